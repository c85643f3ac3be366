"""The forms in which batches have rows of different lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark.dataset._samples import Samples

Form = Literal["nested", "packed", "padded"]


def checked_forms(ragged: Mapping[str, Form] | Form, samples: Samples) -> Mapping[str, Form]:
    """The form of each ragged column. Raises for what is no form, and for what is no ragged column."""
    columns = [name for name, kind in samples.kinds.items() if kind == "ragged"]
    forms: Mapping[str, Form] = ragged if isinstance(ragged, Mapping) else dict.fromkeys(columns, ragged)
    for form in [*forms.values(), *([] if isinstance(ragged, Mapping) else [ragged])]:
        if form not in get_args(Form):
            raise ValueError(f"ragged is {form!r:.100}, expected one of {', '.join(get_args(Form))}")
    for name in forms:
        if name not in columns:
            raise SafetensorsSparkError(
                f"`ragged` names the column `{name:.200}`; {samples.location} is read with "
                f"{', '.join(columns) if columns else 'no'} ragged columns."
            )
    return {name: forms.get(name, "nested") for name in columns}

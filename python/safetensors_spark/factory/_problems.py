"""Values checked by pydantic's models, and what is wrong with them in words, with the place of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from safetensors_spark.factory._nearest import meant
from safetensors_spark.factory._yaml import Place

_M = TypeVar("_M", bound=BaseModel)

_EXPECTED = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


@dataclass(frozen=True)
class Problem:
    """Something wrong at a place of a configuration."""

    place: Place
    text: str


def checked_as(
    model: type[_M], value: Any, place: Place, problems: list[Problem], further: Sequence[str] = ()
) -> _M | None:
    """The value as a model; None if it is not one, with what is wrong added to `problems`.

    Args:
        place: where the value stands.
        further: keys that may stand beside the model's own.
    """
    try:
        # As JSON: a list is a tuple there, and nothing else becomes what it is not, such as text a number.
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        problems += _told(model, error, value, place, further)
        return None


def _told(
    model: type[BaseModel], error: ValidationError, value: Any, place: Place, further: Sequence[str]
) -> Iterator[Problem]:
    expected: dict[Place, list[str]] = {}
    for detail in error.errors():
        inside, known = _place_in(value, detail["loc"]), _keys_at(model, detail["loc"][:-1])
        last = str(detail["loc"][-1]) if detail["loc"] else ""
        match detail["type"]:
            case "extra_forbidden":
                yield Problem(place + inside, f"`{last}` is not known. {meant(last, [*known, *further])}")
            case "missing" if isinstance(detail["loc"][-1], int):
                yield Problem(place + inside, f"{_shown(detail['input'])} is too short.")
            case "missing":
                about = known[last].description if last in known else None
                yield Problem(place + inside, f"`{last}` is missing{f': {about}' if about else '.'}")
            case "union_tag_not_found":
                yield Problem(place + inside, f"{detail['ctx']['discriminator']} is missing.".replace("'", "`"))
            case "union_tag_invalid":
                tag, tags = str(detail["ctx"]["tag"]), str(detail["ctx"]["expected_tags"])
                key = str(detail["ctx"]["discriminator"]).strip("'")
                names = [one.strip(" '") for one in tags.split(",")]
                yield Problem((*place, *inside, key), f"`{key}` is `{tag}`, which is not known. {meant(tag, names)}")
            case "too_short" if len(detail["input"]) >= detail["ctx"]["min_length"]:
                # It is too short without those of its items that are wrong, which are told.
                continue
            case "value_error":
                yield Problem(place + inside, f"{detail['ctx']['error']}".removesuffix(".") + ".")
            case _:
                # A union has one error for each of what it takes.
                expected.setdefault(inside, []).append(_expected(detail))
    for inside, kinds in expected.items():
        name = next((f"`{one}`" for one in reversed(inside) if isinstance(one, str)), "this")
        numbers = "".join(f"[{one}]" for one in inside[-1:] if isinstance(one, int))
        text = f"{name}{numbers} is {_shown(_at(value, inside))}, expected {', or '.join(dict.fromkeys(kinds))}"
        yield Problem(place + inside, text if text.endswith("?") else f"{text}.")


def _expected(detail: ErrorDetails) -> str:
    found = _EXPECTED.get(detail["type"])
    if found is None:
        message = detail["msg"]
        found = message.removeprefix("Input should be ") if message.startswith("Input should be ") else message
        found = found.replace("'", "`")
    if detail["type"] == "too_short":
        return f"at least {detail['ctx']['min_length']}"
    if detail["type"] == "literal_error" and isinstance(detail["input"], str):
        names = detail["ctx"]["expected"].replace(" or ", ", ").split(", ")
        near = meant(detail["input"], [one.strip("'") for one in names])
        return f"{found}. {near}" if near.startswith("Did") else found
    return found


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None:
        return "empty"
    if isinstance(value, str):
        return f"the text {value!r:.60}"
    return json.dumps(value)


def _at(value: Any, place: Place) -> Any:
    for one in place:
        value = value[one]
    return value


def _place_in(value: Any, loc: Sequence[str | int]) -> Place:
    """The parts of pydantic's place that the value has: others name the kinds of a union."""
    found: list[str | int] = []
    for one in loc:
        has = one in value if isinstance(value, dict) else isinstance(value, list) and one in range(len(value))
        if has:
            found.append(one)
            value = value[one]
    return tuple(found)


def _keys_at(model: type[BaseModel], loc: Sequence[str | int]) -> dict[str, Any]:
    """The fields of the models that may stand at a place of a model, by name."""
    models = [model]
    for one in loc:
        inner = [found for each in models for found in _models_in(each.model_fields.get(str(one)))]
        tagged = [each for each in models if _tag(each) == one]
        models = inner or tagged or models
    return {name: about for each in models for name, about in each.model_fields.items()}


def _tag(model: type[BaseModel]) -> Any:
    """The name of a model among those of a union."""
    about = model.model_fields.get("type")
    return None if about is None else next(iter(get_args(about.annotation)), None)


def _models_in(about: Any) -> list[type[BaseModel]]:
    found: list[type[BaseModel]] = []
    left = [] if about is None else [about.annotation]
    while left:
        one = left.pop()
        if isinstance(one, type) and issubclass(one, BaseModel):
            found.append(one)
        left += get_args(one)
    return found

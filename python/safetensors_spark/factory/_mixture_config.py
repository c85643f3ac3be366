"""The mixture of datasets that a configuration names as its input."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from safetensors_spark.factory._caps import Caps
from safetensors_spark.factory._input import DatasetInput
from safetensors_spark.factory._mixture import mix


class MixturePart(DatasetInput):
    """A dataset of a mixture: arguments of `datasets.load_dataset`, its weight, and what is taken of it at most."""

    weight: float = Field(ge=0, allow_inf_nan=False, description="Its weight; the sum of weights need not be 1.")
    max_rows: int | None = Field(default=None, ge=0, description="Rows that are taken at most.")
    max_tokens: int | None = Field(default=None, ge=0, description="Tokens that are taken at most.")
    max_images: int | None = Field(default=None, ge=0, description="Images that are taken at most.")
    max_bytes: int | None = Field(default=None, ge=0, description="Bytes of values that are taken at most.")

    @property
    def pair(self) -> tuple[Any, float, Caps]:
        """What `mix` takes. Raises `ConfigError` if there is no dataset."""
        own = {name: getattr(self, name) for name in DatasetInput.model_fields}
        caps = Caps(self.max_rows, self.max_tokens, self.max_images, self.max_bytes)
        return DatasetInput(**own).open(), self.weight, caps


class MixtureConfig(BaseModel):
    """Arguments of `mix`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mixture: tuple[MixturePart, ...] = Field(min_length=1, description="The datasets.")
    seed: int = Field(default=0, ge=0, description="Decides which dataset each row is of.")
    stopping: Literal["first_exhausted", "all_exhausted", "all_exhausted_without_replacement"] = Field(
        default="first_exhausted", description="When the mixture ends."
    )
    shards: int | None = Field(default=None, ge=1, description="Shards of the mixture: by default those of its inputs.")
    tokens: str = Field(default="token_count", description="Field that `max_tokens` counts.")
    images: str = Field(default="image", description="Field that `max_images` counts.")

    def resolved(self, folder: Path) -> MixtureConfig:
        """The same input, seen from anywhere."""
        return self.model_copy(update={"mixture": tuple(one.resolved(folder) for one in self.mixture)})

    def open(self) -> Any:
        """The mixture, as a stream. Raises `ConfigError` if there is none."""
        arguments = {name: getattr(self, name) for name in type(self).model_fields if name != "mixture"}
        return mix([one.pair for one in self.mixture], **arguments)

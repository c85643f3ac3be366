"""Images as arrays of pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pydantic import Field

from safetensors_spark.factory._operator import Columns, Generator
from safetensors_spark.factory.operators._images import (
    MAX_PIXELS,
    ImageError,
    decode,
    in_mode,
    require_pillow,
    sources_of,
)


class ImageDecode(Generator):
    """The pixels of an image, as a tensor for a training loop or the safetensors sink.

    - `pixels`: uint8, of height x width x channels (HWC), in row-major order. With `shape` a list of
      fixed size, otherwise a list of any size.
    - `pixels_shape`: three int32: height, width, channels.

    Images are rotated according to their EXIF orientation, and of an animation the first frame counts. Pixels of 16
    bits are scaled to 8, and transparency is dropped. A row without an image is null in both fields. It is a generator,
    since it makes data and no score; `seed` has no effect.

    An image that cannot be decoded, or does not have `shape`, is a `ValueError` that names the row, unless `on_error`
    is `null`. Decoded images take 10 to 50 times the memory of JPEG: resize them first.
    """

    type = "image_decode"

    field: str = Field(default="image", description="The image field.")
    output: str = Field(default="pixels", description="The new field; the other one is this with `_shape`.")
    mode: Literal["RGB", "L"] = Field(default="RGB", description="RGB has 3 channels, L (grey) has 1.")
    shape: tuple[int, int] | None = Field(
        default=None, description="Height and width that every image has, for lists of fixed size."
    )
    on_error: Literal["raise", "null"] = Field(
        default="raise", description="What to do with an image that cannot be decoded: raise an error, or write null."
    )
    max_pixels: int = Field(
        default=MAX_PIXELS, ge=1, le=MAX_PIXELS, description="An image with more pixels cannot be decoded."
    )

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        pixels = pa.large_list(pa.uint8()) if self.shape is None else pa.list_(pa.uint8(), self._length)
        return {self.output: pixels, f"{self.output}_shape": pa.list_(pa.int32(), 3)}

    @property
    def _length(self) -> int:
        height, width = self.shape or (0, 0)
        return height * width * len(self.mode)

    def load(self) -> None:
        require_pillow()

    def generate(self, batch: pa.RecordBatch) -> Columns:
        found = [self._array(*row) for row in enumerate(sources_of(batch.column(self.field), self.field))]
        shapes = [None if one is None else one.shape for one in found]
        return {
            self.output: self._pixels(found),
            f"{self.output}_shape": pa.array(shapes, pa.list_(pa.int32(), 3)),
        }

    def _array(self, row: int, source: bytes | str | None) -> NDArray[np.uint8] | None:
        if source is None:
            return None
        try:
            image = in_mode(decode(source, self.max_pixels), self.mode)
            array = np.asarray(image).reshape(image.height, image.width, len(self.mode))
            if self.shape is not None and array.shape[:2] != self.shape:
                expected = " x ".join(map(str, self.shape))
                raise ImageError(f"{image.height} x {image.width} pixels, expected {expected}: resize before")
        except ImageError as error:
            if self.on_error == "null":
                return None
            raise ValueError(f"row {row}: `{self.field}` cannot be decoded: {error}") from error
        return array

    def _pixels(self, arrays: list[NDArray[np.uint8] | None]) -> Any:
        empty = pa.array([one is None for one in arrays], pa.bool_())
        if self.shape is None:
            ends = np.cumsum([0, *(0 if one is None else one.size for one in arrays)], dtype=np.int64)
            return pa.LargeListArray.from_arrays(pa.array(ends), _joined(arrays, 0), mask=empty)
        return pa.FixedSizeListArray.from_arrays(_joined(arrays, self._length), self._length, mask=empty)


def _joined(arrays: list[NDArray[np.uint8] | None], length_of_null: int) -> pa.Array:
    flat = [np.zeros(length_of_null, np.uint8) if one is None else one.reshape(-1) for one in arrays]
    return pa.array(np.concatenate(flat) if flat else np.empty(0, np.uint8))

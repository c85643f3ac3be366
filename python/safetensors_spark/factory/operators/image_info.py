"""Properties of images, from their headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark.factory._operator import Columns, Score
from safetensors_spark.factory.operators._images import (
    MAX_PIXELS,
    ImageError,
    load_pixels,
    open_image,
    require_pillow,
    sources_of,
    turn_of,
)

_FIELDS = {
    "width": pa.int32(),
    "height": pa.int32(),
    "image_format": pa.string(),
    "image_mode": pa.string(),
    "aspect": pa.float64(),
    "image_error": pa.string(),
}
_NOTHING = dict.fromkeys(_FIELDS)


class ImageInfo(Score):
    """Size, format and mode of an image, or why it has none.

    - `width`, `height`: in pixels, after the rotation of its EXIF orientation.
    - `image_format`, `image_mode`: Pillow's names, such as `JPEG` and `RGB`. Of an animation, the first frame counts.
    - `aspect`: width divided by height.
    - `image_error`: why the image cannot be read; null for one that can. Then the other fields are null.

    A row without an image is null in all fields. Only the header is read, so a file that is truncated after it has no
    error, unless `decode` reads the pixels. JPEG, PNG, WebP, GIF, BMP, TIFF, PPM, JPEG 2000, AVIF and ICO are known;
    formats that need other programs are errors.

    An image is a struct of `bytes` and `path`, as the library `datasets` stores it, or binary. An image without bytes
    is read from its path, if that is a local file.
    """

    type = "image_info"

    field: str = Field(default="image", description="The image field.")
    decode: bool = Field(default=False, description="Whether to decode the pixels too, which finds all broken files.")
    max_pixels: int = Field(
        default=MAX_PIXELS, ge=1, le=MAX_PIXELS, description="An image with more pixels is an error, and not decoded."
    )
    prefix: str = Field(default="", description="A prefix for the names of the new fields.")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {f"{self.prefix}{name}": kind for name, kind in _FIELDS.items()}

    def load(self) -> None:
        require_pillow()

    def score(self, batch: pa.RecordBatch) -> Columns:
        rows = [
            _NOTHING if one is None else self._info(one) for one in sources_of(batch.column(self.field), self.field)
        ]
        return {f"{self.prefix}{name}": pa.array([row[name] for row in rows], kind) for name, kind in _FIELDS.items()}

    def _info(self, source: bytes | str) -> dict[str, Any]:
        try:
            image = open_image(source, self.max_pixels)
            width, height = image.size if turn_of(image) < 5 else image.size[::-1]
            if self.decode:
                load_pixels(image, self.max_pixels)
        except ImageError as error:
            return {**_NOTHING, "image_error": str(error)}
        return {
            "width": width,
            "height": height,
            "image_format": image.format,
            "image_mode": image.mode,
            "aspect": width / height,
            "image_error": None,
        }

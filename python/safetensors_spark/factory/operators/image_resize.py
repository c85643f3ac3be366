"""Resizing of images."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark.factory._operator import Columns, Refiner
from safetensors_spark.factory.operators._images import (
    MAX_PIXELS,
    STRUCT,
    ImageError,
    in_mode,
    load_pixels,
    open_image,
    require_pillow,
    sources_of,
    turn_of,
    upright,
)

if TYPE_CHECKING:
    from PIL.Image import Image

# By format, the modes that it is written in as they are. Other modes become RGB, or RGBA where they are transparent.
_MODES = {
    "JPEG": ("L", "RGB", "CMYK"),
    "PNG": ("L", "LA", "RGB", "RGBA", "I;16"),
    "WEBP": ("RGB", "RGBA"),
    "GIF": ("L", "RGB", "RGBA"),
    "BMP": ("L", "RGB"),
    "TIFF": ("L", "LA", "RGB", "RGBA", "CMYK", "I;16"),
    "PPM": ("L", "RGB"),
}
_LOSSY = ("JPEG", "WEBP")
_SPARE = 3

Pixels = Annotated[int, Field(ge=1, le=65535)]


class ImageResize(Refiner):
    """Resizes images with a Lanczos filter, and encodes them again.

    `size` is the shorter side in pixels, and the other side keeps the aspect ratio, rounded, at least 1; or width and
    height, which may change the ratio. Smaller images are enlarged.

    Images are rotated according to their EXIF orientation, and lose EXIF and other metadata except the colour profile.
    Of an animation the first frame is kept. An image that already has the size and the format, and is upright, keeps
    its bytes, so a second run changes nothing. The same versions of Pillow and its codecs give the same bytes.

    A row without an image stays null. An image that cannot be decoded is a `ValueError` that names the row, unless
    `on_error` is `null`.
    """

    type = "image_resize"

    field: str = Field(default="image", description="The image field.")
    size: Pixels | tuple[Pixels, Pixels] = Field(description="The shorter side, or width and height; in pixels.")
    format: Literal["JPEG", "PNG", "WEBP"] | None = Field(
        default=None, description="The format of the new images; by default the format of each image."
    )
    quality: int = Field(default=90, ge=1, le=100, description="The quality of JPEG and WebP; 100 is the best.")
    stored: Literal["struct", "binary"] = Field(
        default="struct",
        description="How images are stored: a struct of `bytes` and `path`, as in the library `datasets`, or binary.",
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
        return {self.field: STRUCT if self.stored == "struct" else pa.binary()}

    def load(self) -> None:
        require_pillow()

    def refine(self, batch: pa.RecordBatch) -> Columns:
        column = batch.column(self.field)
        self._check_type(column.type)
        found = [self._resized(*row) for row in enumerate(sources_of(column, self.field))]
        if self.stored == "binary":
            return {self.field: pa.array(found, pa.binary())}
        paths = _paths(column)
        rows = [None if one is None else {"bytes": one, "path": path} for one, path in zip(found, paths, strict=True)]
        return {self.field: pa.array(rows, STRUCT)}

    def _check_type(self, kind: pa.DataType) -> None:
        is_struct = pa.types.is_struct(kind)
        if not pa.types.is_null(kind) and is_struct != (self.stored == "struct"):
            other = "struct" if is_struct else "binary"
            raise ValueError(f"field `{self.field}` is {kind}: give {self.id or self.type} stored='{other}'")

    def _resized(self, row: int, source: bytes | str | None) -> bytes | None:
        if source is None:
            return None
        try:
            return self._encoded(source)
        except ImageError as error:
            if self.on_error == "null":
                return None
            raise ValueError(f"row {row}: `{self.field}` cannot be resized: {error}") from error

    def _encoded(self, source: bytes | str) -> bytes:
        from PIL.Image import Resampling

        image = open_image(source, self.max_pixels)
        turn, format_of = turn_of(image), self._format(image)
        width, height = self._target(image.size if turn < 5 else image.size[::-1])
        keeps = image.format == format_of and turn == 1 and (width, height) == image.size
        if keeps and isinstance(source, bytes) and not getattr(image, "is_animated", False):
            load_pixels(image, self.max_pixels)
            return source
        profile = image.info.get("icc_profile")
        # A JPEG decoder makes an image of a half, a quarter or an eighth in a fraction of the time. Lanczos's filter is
        # left three pixels for each new one, which keeps edges sharp.
        enough = (_SPARE * width, _SPARE * height)
        image.draft(None, enough if turn < 5 else enough[::-1])
        load_pixels(image, self.max_pixels)
        resized = _writable(image, format_of)
        kept_profile = profile if resized.mode == image.mode else None
        resized = upright(resized, turn).resize((width, height), Resampling.LANCZOS)
        return self._saved(resized, format_of, kept_profile)

    def _target(self, size: tuple[int, int]) -> tuple[int, int]:
        if isinstance(self.size, tuple):
            return self.size
        shorter = min(size)
        width, height = (max(1, (2 * side * self.size + shorter) // (2 * shorter)) for side in size)
        if width * height > self.max_pixels:
            raise ImageError(f"it would have {width:,} x {height:,} pixels, more than {self.max_pixels:,}")
        return width, height

    def _format(self, image: Image) -> str:
        # MPO is a JPEG with more images behind the first one.
        found = self.format or ("JPEG" if image.format == "MPO" else image.format) or ""
        if found not in _MODES:
            raise ImageError(f"{found} is not written: name a `format`")
        return found

    def _saved(self, image: Image, format_of: str, profile: Any) -> bytes:
        # Encoders take comments, background colours and the like from here.
        image.info = {}
        options: dict[str, Any] = {"quality": self.quality} if format_of in _LOSSY else {}
        if profile:
            options["icc_profile"] = profile
        file = BytesIO()
        image.save(file, format_of, **options)
        return file.getvalue()


def _writable(image: Image, format_of: str) -> Image:
    """The image in a mode that can be resized and written in this format."""
    modes = _MODES[format_of]
    if image.mode in modes:
        return image
    if image.mode in ("1", "I", "F") or image.mode.startswith("I;16"):
        grey = in_mode(image, "L")
        return grey if "L" in modes else grey.convert("RGB")
    is_transparent = image.mode in ("LA", "PA", "RGBa", "La") or "transparency" in image.info
    return image.convert("RGBA" if "RGBA" in modes and (is_transparent or image.mode == "RGBA") else "RGB")


def _paths(column: pa.Array) -> list[str | None]:
    if pa.types.is_null(column.type) or column.type.get_field_index("path") < 0:
        return [None] * len(column)
    return list(column.flatten()[column.type.get_field_index("path")].to_pylist())

"""Perceptual hashes of images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pydantic import Field

from safetensors_spark.factory._operator import Columns, Score
from safetensors_spark.factory.operators._images import (
    MAX_PIXELS,
    ImageError,
    decode,
    in_mode,
    require_pillow,
    sources_of,
)

_SIDE, _KEPT = 32, 8


def _cosines() -> NDArray[np.int64]:
    """The lowest frequencies of the cosine transform, as integers: 8 frequencies x 32 pixels."""
    frequencies, pixels = np.arange(_KEPT)[:, None], np.arange(_SIDE)[None, :]
    cosines: NDArray[np.float64] = np.cos(np.pi * frequencies * (2 * pixels + 1) / (2 * _SIDE))
    return np.rint(cosines * 2**20).astype(np.int64)


_COSINES = _cosines()


class PerceptualHash(Score):
    """The pHash of an image: 64 bits; similar images differ in few of them.

    The image is converted to grey and 32 x 32 pixels (Lanczos filter), and the 8 x 8 lowest frequencies of its discrete
    cosine transform are used (Zauner, Implementation and Benchmarking of Perceptual Image Hash Functions, 2010). A bit
    says whether a frequency is above the median of the 64. It is the algorithm of `imagehash.phash`, computed in
    integers, so that the machine's floating-point rounding affects no bit.

    The bits are 16 hexadecimal digits, the lowest frequency first. Count the bits in which two hashes differ: for two
    versions of the same picture, usually 10 or fewer. All pictures of a single colour have the same hash.

    Images are rotated according to their EXIF orientation, and of an animation the first frame counts. A row without an
    image, or whose image cannot be decoded, is null.
    """

    type = "perceptual_hash"

    field: str = Field(default="image", description="The image field.")
    output: str = Field(default="phash", description="The new field.")
    max_pixels: int = Field(
        default=MAX_PIXELS, ge=1, le=MAX_PIXELS, description="An image with more pixels is not decoded."
    )

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {self.output: pa.string()}

    def load(self) -> None:
        require_pillow()

    def score(self, batch: pa.RecordBatch) -> Columns:
        sources = sources_of(batch.column(self.field), self.field)
        return {self.output: pa.array([None if one is None else self._hash(one) for one in sources], pa.string())}

    def _hash(self, source: bytes | str) -> str | None:
        from PIL.Image import Resampling

        try:
            image = in_mode(decode(source, self.max_pixels), "L")
        except ImageError:
            return None
        pixels = np.asarray(image.resize((_SIDE, _SIDE), Resampling.LANCZOS)).astype(np.int64)
        frequencies = (_COSINES @ pixels @ _COSINES.T).reshape(-1)
        # The median of 64 numbers lies between two, so twice each number is compared with their sum.
        middle = np.sort(frequencies)[31:33].sum()
        return np.packbits(2 * frequencies > middle).tobytes().hex()

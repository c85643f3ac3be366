"""What the options say of each column: the dtype and the shape that its rows are stored with."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.dtypes import DTYPES
from safetensors_spark._files.manifest import Column
from safetensors_spark._files.numpy_dtypes import numpy_dtype
from safetensors_spark.dataset._write.chunk import Chunk, column_of, shown
from safetensors_spark.dataset._write.numbers import TARGETS, Rounding, UnencodableValueError, encoded


@dataclass(frozen=True)
class ColumnOptions:
    """The options `dtype`, `shapes` and `rounding`, as Spark's writer has them.

    Attributes:
        dtype: one for all columns of numbers, or by column.
        shapes: the shape of one row, by column.
    """

    dtype: str | Mapping[str, str] | None
    shapes: Mapping[str, Sequence[int]]
    rounding: Rounding

    def __post_init__(self) -> None:
        names = self.dtype.values() if isinstance(self.dtype, Mapping) else [] if self.dtype is None else [self.dtype]
        if not set(names) <= set(DTYPES):
            raise InvalidWriteError(
                f"`dtype` is {self.dtype!r}, expected one of {', '.join(DTYPES)}, or a dictionary with one for each "
                "column."
            )
        if not all(_is_shape(shape) for shape in self.shapes.values()):
            raise InvalidWriteError(
                f"`shapes` is {self.shapes!r:.200}, expected a dictionary of shapes, such as "
                "{'image': [3, 224, 224], 'label': []}."
            )

    def check_names(self, columns: Collection[str]) -> None:
        """Raise `InvalidWriteError` if an option names none of the columns."""
        for option, names in (("dtype", self.dtype), ("shapes", self.shapes)):
            for name in names if isinstance(names, Mapping) else ():
                if name not in columns:
                    raise InvalidWriteError(
                        f"`{option}` names `{name}`, but the columns to write are: {', '.join(columns)}."
                    )

    def apply(self, chunk: Chunk, known: Column | None) -> Chunk:
        """The rows as they are stored.

        Args:
            known: the column in rows before; empty lists tell no dtype, and take it from there.

        Raises `InvalidWriteError` for numbers that the dtype cannot hold, and rows that do not fit the shape.
        """
        asked = self.dtype.get(chunk.column.name) if isinstance(self.dtype, Mapping) else self.dtype
        if not chunk.is_typed:
            chunk = _typed(chunk, known, asked)
        return self._shaped(self._converted(chunk, asked))

    def _converted(self, chunk: Chunk, asked: str | None) -> Chunk:
        column = chunk.column
        if asked in (None, column.dtype):
            return chunk
        if column.kind not in ("fixed", "ragged"):
            # One name for all columns leaves out those that have no choice.
            if isinstance(self.dtype, Mapping):
                raise InvalidWriteError(
                    f"Column `{column.name}` is {column.kind}, which is stored as {column.dtype}, not as {asked}. "
                    "Leave it out of `dtype`."
                )
            return chunk
        if chunk.is_struct:
            raise InvalidWriteError(
                f"Column `{column.name}`: dtype {column.dtype}, but the option `dtype` asks for {asked}, and bytes are "
                "not converted."
            )
        if asked not in TARGETS or chunk.values.dtype.kind == "c":
            raise InvalidWriteError(
                f"Column `{column.name}` holds numbers of {column.dtype}, which cannot be written as {asked}, only as: "
                f"{', '.join(TARGETS)}. Give Tensor Structs that hold the bytes."
            )
        try:
            values = encoded(chunk.values, asked, self.rounding)
        except UnencodableValueError as error:
            raise InvalidWriteError(f"Column `{column.name}`, row {chunk.row_of(error.index)}: {error}.") from None
        stored = column_of(column.name, asked, column.shape or (), column.kind)
        kept = column.type if chunk.has_spark_type else stored.type
        return replace(chunk, column=replace(column, dtype=asked, type=kept), values=values)

    def _shaped(self, chunk: Chunk) -> Chunk:
        column, asked = chunk.column, self.shapes.get(chunk.column.name)
        if asked is None:
            return chunk
        if column.kind != "fixed":
            raise InvalidWriteError(
                f"`shapes` names `{column.name}`, which is {column.kind}: only columns whose rows all have one shape "
                "can be given another. Leave it out of `shapes`."
            )
        shape = tuple(asked)
        if len(chunk) and math.prod(column.shape or ()) != math.prod(shape):
            raise InvalidWriteError(
                f"Column `{column.name}`: rows of shape {shown(column.shape or ())}, but `shapes` gives the column "
                f"{shown(shape)}, which takes {math.prod(shape)} elements."
            )
        values = chunk.values if chunk.is_struct else chunk.values.reshape(len(chunk), *shape)
        return replace(chunk, column=replace(column, shape=shape), values=values)


def _is_shape(shape: object) -> bool:
    if not isinstance(shape, Sequence) or isinstance(shape, str | bytes):
        return False
    return all(type(dim) is int and 0 <= dim < 2**31 for dim in shape)


def _typed(chunk: Chunk, known: Column | None, asked: str | None) -> Chunk:
    """Empty lists with the dtype of the rows before, or else with the one that is asked for."""
    name, kind = chunk.column.name, chunk.column.kind
    dtype = known.dtype if known and known.dtype else asked
    if dtype is None:
        raise InvalidWriteError(
            f"Column `{name}`: all rows so far are empty lists, which tell no dtype. Write arrays of NumPy, PyTorch or "
            f"Arrow, whose dtype is known, or give it: dtype={{{name!r}: 'I64'}}."
        )
    shape = chunk.column.shape
    if shape is None and known:
        shape = known.shape
    values = np.empty((0 if chunk.offsets is not None else len(chunk), *(shape or ())), numpy_dtype(dtype))
    # Of ragged rows a later one may tell the shape of a value.
    column = replace(column_of(name, dtype, shape or (), kind), shape=shape)
    return replace(chunk, column=column, values=values)

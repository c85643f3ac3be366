package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}
import org.apache.spark.unsafe.Platform

import io.github.semyonsinchenko.safetensors.format.{ByteCopy, TensorInfo}
import io.github.semyonsinchenko.safetensors.read.columns.TensorField
import io.github.semyonsinchenko.safetensors.storage.UnreadableFileException
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** Creates Tensor Structs for one column, with the fields that the query needs. */
private[read] final class TensorCell(file: OpenFile, fields: Vector[TensorField]) {

  // The layout of the previous struct. It is reused while tensors have the same shape and dtype.
  private var layout: StructLayout = _

  private val isData = fields == Vector(TensorField.Data)

  /** The struct of a tensor or a slice of it. The `size` bytes at `start` of the file are read later. */
  def struct(tensor: TensorInfo, shape: IndexedSeq[Long], start: Long, size: Long): InternalRow = {
    if (layout == null || !layout.fits(tensor.dtype, shape, size)) change(tensor, shape, size)
    if (isData) ofData(start, size.toInt) else inMemory(start, size)
  }

  /** A query that needs only `data` takes the array from the struct and may keep it. An `UnsafeRow` would copy it. */
  private def ofData(start: Long, size: Int): InternalRow = {
    val data = new Array[Byte](size)
    file.memory.lacks(ByteCopy(start, size, data, 0))
    new GenericInternalRow(Array[Any](data))
  }

  /** Spark copies an `UnsafeRow` to the output row as one block. */
  private def inMemory(start: Long, size: Long): InternalRow = {
    val place = file.memory.reserve(layout.size)
    val array = file.memory.chunk
    layout.write(array, place)
    if (layout.hasData) file.memory.lacks(ByteCopy(start, size.toInt, array, place + layout.dataStart))
    val struct = new UnsafeRow(fields.length)
    struct.pointTo(array, Platform.BYTE_ARRAY_OFFSET.toLong + place, layout.size)
    struct
  }

  private def change(tensor: TensorInfo, shape: IndexedSeq[Long], size: Long): Unit = {
    if (fields.contains(TensorField.Shape)) checkShape(tensor, shape)
    if (fields.contains(TensorField.Data) && StructLayout.size(fields, tensor.dtype, shape,
        size) > TensorStruct.MaxBytes)
      throw new UnreadableFileException(
        s"${file.file.path}: tensor `${tensor.name}` has $size bytes, and a binary value holds at most ${TensorStruct.MaxBytes}. " +
          "Select its `shape` and `dtype` only, or, if its first dimension counts samples, read it with the option `layout=rows`.")
    layout = new StructLayout(fields, tensor.dtype, shape, size)
  }

  private def checkShape(tensor: TensorInfo, shape: IndexedSeq[Long]): Unit =
    if (!shape.forall(dim => dim >= 0 && dim <= Int.MaxValue)) throw new UnreadableFileException(
      s"${file.file.path}: tensor `${tensor.name}` has a dimension that does not fit an integer: " +
        s"${shape.map(java.lang.Long.toUnsignedString).mkString("[", ", ", "]")}. Select its other fields only.")
}

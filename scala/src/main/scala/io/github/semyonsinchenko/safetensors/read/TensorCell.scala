package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeArrayData}
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.dataset.{TensorStruct, UnreadableFileException}
import io.github.semyonsinchenko.safetensors.format.{ByteRange, Dtype, TensorInfo}

/** A tensor, or its samples, as Tensor Structs with the fields that a query needs. */
private[read] final class TensorCell(file: OpenFile, tensor: TensorInfo, shape: IndexedSeq[Long]) {

  private lazy val dims = UnsafeArrayData.fromPrimitiveArray(checkedDims.iterator.map(_.toInt).toArray)

  /** The struct of the `size` bytes from `start` of the file on, and the bytes that it lacks. */
  def struct(
      start: Long,
      size: Long,
      fields: Vector[TensorField]): (GenericInternalRow, Option[MissingBytes]) = {
    val struct  = new GenericInternalRow(fields.length)
    var missing = Option.empty[MissingBytes]
    fields.iterator.zipWithIndex.foreach {
      case (TensorField.Data, i)  => missing = Some(MissingBytes(ByteRange(start, checked(size)), struct, i))
      case (TensorField.Shape, i) => struct.update(i, dims)
      case (TensorField.Dtype, i) => struct.update(i, TensorCell.dtypes(tensor.dtype))
    }
    (struct, missing)
  }

  private def checked(size: Long): Int = {
    if (size > TensorStruct.MaxBytes) throw new UnreadableFileException(
      s"${file.file.path}: tensor `${tensor.name}` has $size bytes, and a binary value holds at most ${TensorStruct.MaxBytes}. " +
        "Select its `shape` and `dtype` only, or, if its first dimension counts samples, read it with the option `layout=rows`.")
    size.toInt
  }

  private def checkedDims: IndexedSeq[Long] = {
    if (!shape.forall(dim => dim >= 0 && dim <= Int.MaxValue)) throw new UnreadableFileException(
      s"${file.file.path}: tensor `${tensor.name}` has a dimension that no integer holds: " +
        s"${shape.map(java.lang.Long.toUnsignedString).mkString("[", ", ", "]")}. Select its other fields only.")
    shape
  }
}

private object TensorCell {
  private val dtypes: Map[Dtype, UTF8String] =
    Dtype.all.map(dtype => dtype -> UTF8String.fromString(dtype.name)).toMap
}

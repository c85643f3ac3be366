package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeArrayData}
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.dataset.{TensorStruct, UnreadableFileException}
import io.github.semyonsinchenko.safetensors.format.{ByteRange, TensorInfo}

/** A row of which all is there but bytes of tensors: those of many rows may be read together. */
private[read] final case class PlannedRow(row: InternalRow, missing: Vector[MissingBytes])

/** Where bytes are in the file, and where they belong in the row. */
private[read] final case class MissingBytes(range: ByteRange, struct: GenericInternalRow, ordinal: Int) {
  def fill(bytes: Array[Byte]): Unit = struct.update(ordinal, bytes)
}

/**
 * A Tensor Struct to be, with the fields that the query needs.
 *
 * @param start where its bytes begin in the file
 * @param size  how many they are
 */
private[read] final class TensorCell(file: OpenFile, tensor: TensorInfo, shape: IndexedSeq[Long]) {

  private lazy val dtype = UTF8String.fromString(tensor.dtype.name)
  private lazy val dims  = UnsafeArrayData.fromPrimitiveArray(checkedDims.iterator.map(_.toInt).toArray)

  /** The struct, and the bytes that it lacks. */
  def struct(
      start: Long,
      size: Long,
      fields: Vector[TensorField]): (GenericInternalRow, Option[MissingBytes]) = {
    val struct  = new GenericInternalRow(fields.length)
    var missing = Option.empty[MissingBytes]
    fields.iterator.zipWithIndex.foreach {
      case (TensorField.Data, i)  => missing = Some(MissingBytes(ByteRange(start, checked(size)), struct, i))
      case (TensorField.Shape, i) => struct.update(i, dims)
      case (TensorField.Dtype, i) => struct.update(i, dtype)
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

/** Rows of a file: what does not differ between them is made once. */
private[read] final class RowTemplate(columns: Vector[RowColumn], file: OpenFile) {

  private val fixed: Array[Any] = columns.map {
    case RowColumn.Partition(ordinal) => file.file.partition(ordinal)
    case RowColumn.Metadata(fields)   => FileField.row(fields, file)
    case _: RowColumn.OfLayout        => null
  }.toArray

  private val own = columns.zipWithIndex.collect { case (column: RowColumn.OfLayout, i) => column -> i }

  /** @param cell a value of the layout's column, and the bytes that it lacks */
  def row(cell: RowColumn.OfLayout => (Any, Option[MissingBytes])): PlannedRow = {
    val values = fixed.clone()
    val missing = own.flatMap { case (column, i) =>
      val (value, lacks) = cell(column)
      values(i) = value
      lacks
    }
    PlannedRow(new GenericInternalRow(values), missing)
  }
}

package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.codec.Conversion
import io.github.semyonsinchenko.safetensors.format.{ByteCopy, Dtype}
import io.github.semyonsinchenko.safetensors.read.columns.{DecodedTypes, RowColumn, StoredColumn}
import io.github.semyonsinchenko.safetensors.storage.{FileFault, UnreadableFileException}
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** The values of a column, in Spark's internal representation. */
private[rows] trait Cells {

  /** The value of a row. Its bytes may be read later, with those of other rows. */
  def value(row: Long): Any
}

private[rows] object Cells {

  /** Of a column that the file lacks. */
  val Null: Cells = _ => null

  /**
   * @param stored how the file has the column
   * @throws UnreadableFileException if it cannot be decoded to the type of the column
   */
  def of(column: RowColumn.OfTensor, slices: RowSlices, stored: StoredColumn): Cells = column match {
    case RowColumn.Tensor(_, fields, _) =>
      val cell = new TensorCell(slices.file, fields)
      row => cell.struct(slices.tensor, slices.shape(row), slices.start(row), slices.size(row))
    case RowColumn.Decoded(name, to, _) =>
      DecodedTypes.misfit(to, stored).foreach(choices =>
        throw new UnreadableFileException(
          s"${slices.file.file.path}: column `$name` is ${to.simpleString} in the schema, but tensor `${slices.tensor.name}` is " +
            s"${stored.show}, which is read as $choices."))
      decoded(to, slices)
  }

  private def decoded(to: DataType, slices: RowSlices): Cells = to match {
    case _: StringType                    => new TextCells(slices)
    case BinaryType                       => new BinaryCells(slices)
    case DateType                         => scalars(slices, Dtype.I32)
    case TimestampType | TimestampNTZType => scalars(slices, Dtype.I64)
    case vector if DecodedTypes.vector(vector) =>
      new VectorCells(new ArrayCells(slices, Dtype.F64, depth = 1))
    case other =>
      val (depth, element) = DecodedTypes.levels(other)
      val dtype            = DecodedTypes.dtypeOf(element).get
      if (depth == 0) scalars(slices, dtype)
      else {
        val arrays = new ArrayCells(slices, dtype, depth)
        row => arrays.array(row)
      }
  }

  private def scalars(slices: RowSlices, to: Dtype): Cells = {
    val blocks =
      new ElementBlocks(slices.file, slices.tensor, to.bits / 8, Conversion.of(slices.tensor.dtype, to))
    def end = slices.end
    to match {
      case Dtype.BOOL => row => blocks.byte(row, end) != 0
      case Dtype.I8   => row => blocks.byte(row, end)
      case Dtype.I16  => row => blocks.short(row, end)
      case Dtype.I32  => row => blocks.int(row, end)
      case Dtype.I64  => row => blocks.long(row, end)
      case Dtype.F32  => row => blocks.float(row, end)
      case _          => row => blocks.double(row, end)
    }
  }
}

/** Strings in the memory of the rows. */
private final class TextCells(slices: RowSlices) extends Cells {
  private val file = slices.file

  override def value(row: Long): Any = {
    val size  = BinaryCells.sizeOf(slices, row)
    val place = file.memory.reserve((size + 7) / 8 * 8)
    val array = file.memory.chunk
    val text  = UTF8String.fromAddress(array, Platform.BYTE_ARRAY_OFFSET.toLong + place, size)
    file.memory.lacks(ByteCopy(slices.start(row), size, array, place))
    file.memory.afterwards(() =>
      if (!text.isValid) throw new UnreadableFileException(
        s"${file.file.path}: the text column `${slices.tensor.name}` has bytes in row $row that are not UTF-8. The file is damaged: " +
          "restore it, or write the dataset again.",
        fault = FileFault.Corrupt
      ))
    text
  }
}

/** Spark's binary value is a `byte[]`, which a query may keep. */
private final class BinaryCells(slices: RowSlices) extends Cells {
  override def value(row: Long): Any = {
    val bytes = new Array[Byte](BinaryCells.sizeOf(slices, row))
    slices.file.memory.lacks(ByteCopy(slices.start(row), bytes.length, bytes, 0))
    bytes
  }
}

private object BinaryCells {
  def sizeOf(slices: RowSlices, row: Long): Int = {
    val size = slices.size(row)
    if (size > TensorStruct.MaxBytes - 7) throw ArrayCells.unreadable(slices,
      s"row $row has $size bytes, and a string or a binary value holds at most ${TensorStruct.MaxBytes}")
    size.toInt
  }
}

/** Dense vectors of Spark ML, as its user-defined type represents them. */
private final class VectorCells(values: ArrayCells) extends Cells {
  override def value(row: Long): Any =
    new GenericInternalRow(Array[Any](VectorCells.Dense, null, null, values.array(row)))
}

private object VectorCells {
  private val Dense = 1.toByte
}

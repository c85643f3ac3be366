package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.dataset.ColumnKind
import io.github.semyonsinchenko.safetensors.format.TensorInfo
import io.github.semyonsinchenko.safetensors.read.columns.{RowColumn, StoredColumn}
import io.github.semyonsinchenko.safetensors.read.conditions.Conditions
import io.github.semyonsinchenko.safetensors.storage.UnreadableFileException

/**
 * One row per key, as it was written with `name_col`: a tensor for each column. A key is the name of its tensor, or the part
 * before the separator if there are several columns.
 *
 * @param separator between key and column in a name; none if the keys are the names
 * @param first     a column of tensors, which counts the rows
 */
private[read] final case class KeyedRows(
    columns: Vector[RowColumn],
    separator: Option[String],
    first: RowColumn.OfTensor,
    conditions: Conditions)
    extends FileRows {

  override def of(file: OpenFile): Iterator[InternalRow] = {
    val template = new RowTemplate(columns, file)
    val cells    = columns.map(cell(file, _))
    LongRows.inOrder(file).iterator
      .filter(tensor => isOf(first, tensor.name) && conditions.hold(file.file, tensor))
      .map { tensor =>
        val key = keyOf(tensor.name)
        template.row(i => cells(i)(key, tensor))
      }
  }

  private def suffix(column: RowColumn.OfTensor): String = separator.fold("")(_ + column.name)

  private def isOf(column: RowColumn.OfTensor, name: String): Boolean = name.endsWith(suffix(column))

  private def keyOf(name: String): String = name.stripSuffix(suffix(first))

  private def cell(file: OpenFile, column: RowColumn): (String, TensorInfo) => Any = column match {
    case RowColumn.Key                 => (key, _) => UTF8String.fromString(key)
    case RowColumn.NumberKey(dataType) => (key, _) => number(file, key, dataType)
    case column: RowColumn.OfTensor if column.name == first.name =>
      (_, tensor) => value(file, column, tensor)
    case other: RowColumn.OfTensor =>
      (key, _) =>
        file.tensorNamed(key + suffix(other)).fold(lacking(file, other, key))(value(file, other, _))
    case _ => (_, _) => throw new IllegalStateException(s"$column differs between files only")
  }

  private def lacking(file: OpenFile, column: RowColumn.OfTensor, key: String): Any =
    if (column.nullable) null
    else throw new UnreadableFileException(
      s"${file.file.path} has no tensor `$key${suffix(column)}`, which the schema requires. Make the column nullable to read null " +
        "there.")

  private def value(file: OpenFile, column: RowColumn.OfTensor, tensor: TensorInfo): Any = {
    val stored = StoredColumn(ColumnKind.Fixed, tensor.dtype, tensor.shape)
    val row    = new WholeTensor(file, tensor)
    row.select(0, 1, 1)
    Cells.of(column, row, stored).value(0)
  }

  private def number(file: OpenFile, key: String, to: DataType): Any = {
    val parsed: Option[Any] = to match {
      case ByteType    => key.toByteOption
      case ShortType   => key.toShortOption
      case IntegerType => key.toIntOption
      case _           => key.toLongOption
    }
    parsed.getOrElse(throw new UnreadableFileException(
        s"${file.file.path}: the key `$key` is no ${to.simpleString}, as the table says. Declare the column as string."))
  }
}

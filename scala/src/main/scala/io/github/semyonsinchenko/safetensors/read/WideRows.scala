package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.types.StructType

import io.github.semyonsinchenko.safetensors.dataset.{
  InvalidRequestException,
  TensorStruct,
  UnreadableFileException
}
import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header}

/**
 * A tensor that a query needs.
 *
 * @param fields   the fields of the Tensor Struct that it needs, in the order that it wants them
 * @param nullable whether a file without the tensor is right
 */
private[read] final case class TensorColumn(name: String, fields: Vector[TensorField], nullable: Boolean)

/** One file as one row: a column for each tensor that the query needs. */
private[read] final case class WideRows(columns: Vector[TensorColumn]) extends FileRows {

  override def of(source: ByteSource, header: Header): Iterator[InternalRow] =
    Iterator.single(new GenericInternalRow(columns.map(cell(source, header, _)).toArray[Any]))

  private def cell(source: ByteSource, header: Header, column: TensorColumn): Any =
    header.tensor(column.name) match {
      case Some(tensor)            => TensorRow.of(source, header, tensor, column.fields)
      case None if column.nullable => null
      case None => throw new UnreadableFileException(
          s"${source.name} has no tensor `${column.name}`, which the schema requires. Make the column nullable to read null there.")
    }
}

private[read] object WideRows {

  /** @param required the columns of the schema that the query needs, and of their Tensor Structs the fields */
  def of(required: StructType): WideRows = WideRows(required.fields.toVector.map(column =>
      TensorColumn(column.name, TensorField.of(column.dataType), column.nullable)))

  /** @throws InvalidRequestException if a column is no Tensor Struct */
  def checkSchema(schema: StructType): Unit = schema.foreach { column =>
    if (!TensorStruct.matches(column.dataType)) throw new InvalidRequestException(
      s"Column `${column.name}` of the schema is ${column.dataType.simpleString}, but tensors are read as " +
        s"${TensorStruct.dataType.simpleString}. Give it that type, and decode with `st_to_array`.")
  }
}

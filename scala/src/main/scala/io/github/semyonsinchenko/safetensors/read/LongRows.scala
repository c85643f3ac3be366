package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.dataset.{InvalidRequestException, TensorStruct}
import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header, TensorInfo}

/**
 * Each tensor as a row: its name and, as far as the query needs it, its Tensor Struct. In the order of the tensors' bytes.
 *
 * @param columns those that the query needs, in the order that it wants them
 * @param filters a row is only made of a tensor that matches all of them
 */
private[read] final case class LongRows(columns: Vector[LongColumn], filters: Seq[TensorFilter])
    extends FileRows {

  override def of(source: ByteSource, header: Header): Iterator[InternalRow] =
    header.tensors.iterator.filter(tensor => filters.forall(_.matches(tensor))).map(tensor =>
      new GenericInternalRow(columns.map(cell(source, header, tensor, _)).toArray[Any]))

  private def cell(source: ByteSource, header: Header, tensor: TensorInfo, column: LongColumn): Any =
    column match {
      case LongColumn.Key            => UTF8String.fromString(tensor.name)
      case LongColumn.Tensor(fields) => TensorRow.of(source, header, tensor, fields)
    }
}

/** A column of the layout. */
private[read] sealed trait LongColumn

private[read] object LongColumn {
  case object Key                                      extends LongColumn
  final case class Tensor(fields: Vector[TensorField]) extends LongColumn
}

private[safetensors] object LongRows {

  val schema: StructType = new StructType()
    .add("tensor_key", StringType, nullable = false)
    .add("tensor", TensorStruct.dataType, nullable = false)

  /** @param required the columns of the schema that the query needs, and of the Tensor Struct the fields */
  def of(required: StructType, filters: Seq[TensorFilter]): LongRows = LongRows(
    required.fields.toVector.map { column =>
      if (column.name == schema(0).name) LongColumn.Key
      else LongColumn.Tensor(TensorField.of(column.dataType))
    },
    filters)

  /** @throws InvalidRequestException for a schema that the layout has not */
  def checkSchema(asked: StructType): Unit = {
    def isRight(column: String) = asked(column).dataType match {
      case _: StringType => column == schema(0).name
      case other         => column == schema(1).name && TensorStruct.matches(other)
    }
    if (!asked.fieldNames.forall(isRight)) throw new InvalidRequestException(
      s"The schema is ${asked.simpleString}, but the layout `long` has the columns ${schema.simpleString}. Give no schema.")
  }
}

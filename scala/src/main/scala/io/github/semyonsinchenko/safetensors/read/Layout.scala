package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{StringType, StructField, StructType}

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.read.columns.{LongSchema, RowColumn}
import io.github.semyonsinchenko.safetensors.read.conditions.{Conditions, Operand}
import io.github.semyonsinchenko.safetensors.read.rows.{FileRows, LongRows, SampleRows, WideRows}
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** What a row is. */
private[safetensors] sealed abstract class Layout(val name: String) extends Product with Serializable {

  /** The columns of every read; none where they are the names of tensors. */
  def schema: Option[StructType]

  /** Whether consecutive small files may share a partition, and a large file be split. */
  private[read] def packsFiles: Boolean

  /** How many rows a file has, as far as is known before it is opened. */
  private[read] def count(file: DataFile): Option[Long]

  /** @throws InvalidRequestException for a column that is none of the layout */
  private[read] def check(column: StructField): Unit

  private[read] def column(column: StructField): RowColumn.OfLayout

  /** What conditions on a column, or on a field of it, ask for; none for what is left to Spark. */
  private[read] def operand(column: StructField, field: Option[String]): Option[Operand]

  /** @param schema all columns of the layout, though the query needs only some */
  private[read] def rows(schema: StructType, needed: Vector[RowColumn], conditions: Conditions): FileRows
}

private[safetensors] object Layout {

  /** A layout whose columns are named by tensors. */
  sealed abstract class OfTensors(name: String, undoneDims: Int) extends Layout(name) {
    override def schema: Option[StructType] = None

    override private[read] def check(column: StructField): Unit =
      if (!TensorStruct.matches(column.dataType)) throw new InvalidRequestException(
        s"Column `${column.name}` of the schema is ${column.dataType.simpleString}, but tensors are read as " +
          s"${TensorStruct.dataType.simpleString}. Give it that type, and decode with `st_to_array`. Columns of other types are " +
          s"those of directories named `${column.name}=...`, of which there are none.")

    override private[read] def column(column: StructField): RowColumn.OfLayout = RowColumn.tensor(column)

    override private[read] def operand(column: StructField, field: Option[String]): Option[Operand] =
      Operand.ofTensor(column, field, undoneDims)
  }

  /** A file, with a column for each tensor. */
  case object Wide extends OfTensors("wide", undoneDims = 0) {
    override private[read] def packsFiles: Boolean                 = false
    override private[read] def count(file: DataFile): Option[Long] = Some(1)
    override private[read] def rows(
        schema: StructType,
        needed: Vector[RowColumn],
        conditions: Conditions): FileRows =
      WideRows(needed, conditions)
  }

  /** A sample: one of the first dimension of a file's tensors. */
  case object Rows extends OfTensors("rows", undoneDims = 1) {
    override private[read] def packsFiles: Boolean                 = true
    override private[read] def count(file: DataFile): Option[Long] = file.shard.flatMap(_.samples)
    override private[read] def rows(
        schema: StructType,
        needed: Vector[RowColumn],
        conditions: Conditions): FileRows =
      SampleRows(needed, schema.fields.toVector.map(RowColumn.tensor), conditions)
  }

  /** A tensor, with its name. */
  case object Long extends Layout("long") {
    override def schema: Option[StructType]                        = Some(LongSchema.schema)
    override private[read] def packsFiles: Boolean                 = true
    override private[read] def count(file: DataFile): Option[Long] = file.shard.map(_.tensors)

    override private[read] def check(column: StructField): Unit = {
      def isNamed(other: String) = SQLConf.get.resolver(column.name, other)
      val isKey                  = isNamed(LongSchema.Key.name) && column.dataType == StringType
      val isTensor               = isNamed(LongSchema.Tensor.name) && TensorStruct.matches(column.dataType)
      if (!isKey && !isTensor) throw new InvalidRequestException(
        s"Column `${column.name}` of the schema is ${column.dataType.simpleString}, but the layout `long` has the columns " +
          s"${LongSchema.schema.simpleString}, and those of directories named `key=value`. Give no schema.")
    }

    override private[read] def column(column: StructField): RowColumn.OfLayout =
      if (column.dataType == StringType) RowColumn.Key else RowColumn.tensor(column)

    override private[read] def operand(column: StructField, field: Option[String]): Option[Operand] =
      if (column.dataType == StringType) Some(Operand.Key)
      else Operand.ofTensor(column, field, 0)

    override private[read] def rows(
        schema: StructType,
        needed: Vector[RowColumn],
        conditions: Conditions): FileRows =
      LongRows(needed, conditions)
  }

  val all: Vector[Layout] = Vector(Wide, Long, Rows)
}

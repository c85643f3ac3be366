package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.read.columns.{DecodedTypes, LongSchema, RowColumn}
import io.github.semyonsinchenko.safetensors.read.conditions.{Conditions, Operand}
import io.github.semyonsinchenko.safetensors.read.rows.{FileRows, KeyedRows, LongRows, SampleRows, WideRows}
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** Defines what a row is. */
private[safetensors] sealed abstract class Layout(val name: String) extends Product with Serializable {

  /** The fixed columns. None if each tensor has its own column. */
  def schema: Option[StructType]

  /** Whether small files can share a partition, and a large file can be split. */
  private[read] def packsFiles: Boolean

  /** The row count of a file, if it is known before the file is opened. */
  private[read] def count(file: DataFile): Option[Long]

  /** @throws InvalidRequestException if the layout cannot have the column */
  private[read] def check(column: StructField): Unit

  private[read] def column(column: StructField): RowColumn.OfLayout

  /** Whether conditions on tensor names select rows, so that an index can answer them. */
  private[read] def hasKeys: Boolean = false

  /** The operand for a column or one of its fields in a condition. None if Spark must evaluate the condition. */
  private[read] def operand(column: StructField, field: Option[String]): Option[Operand]

  /** @param schema all columns of the layout, including those that the query does not need */
  private[read] def rows(schema: StructType, needed: Vector[RowColumn], conditions: Conditions): FileRows
}

private[safetensors] object Layout {

  /** A layout with one column per tensor name. */
  sealed abstract class OfTensors(name: String, undoneDims: Int) extends Layout(name) {
    override def schema: Option[StructType] = None

    override private[read] def check(column: StructField): Unit =
      if (!canRead(column.dataType)) throw new InvalidRequestException(
        s"Column `${column.name}` of the schema is ${column.dataType.simpleString}, but the layout `$name` reads tensors as " +
          s"${TensorStruct.dataType.simpleString}$others. Only partition columns can have other types, and no directory is named " +
          s"`${column.name}=...`.")

    protected def canRead(dataType: DataType): Boolean = TensorStruct.matches(dataType)

    /** What else could be read, for the message. */
    protected def others: String = ", and only the layout `rows` decodes them"

    override private[read] def column(column: StructField): RowColumn.OfTensor = RowColumn.tensor(column)

    override private[read] def operand(column: StructField, field: Option[String]): Option[Operand] =
      Operand.ofTensor(column, field, undoneDims)
  }

  /** A row is a file, with a column for each tensor. */
  case object Wide extends OfTensors("wide", undoneDims = 0) {
    override private[read] def packsFiles: Boolean                 = false
    override private[read] def count(file: DataFile): Option[Long] = Some(1)
    override private[read] def rows(
        schema: StructType,
        needed: Vector[RowColumn],
        conditions: Conditions): FileRows =
      WideRows(needed, conditions)
  }

  /** A row is a sample: one index in the first dimension of a file's tensors. */
  case object Rows extends OfTensors("rows", undoneDims = 1) {

    override protected def canRead(dataType: DataType): Boolean =
      super.canRead(dataType) || DecodedTypes.isSupported(dataType)

    override protected def others: String =
      ", or as numbers, booleans, arrays of them, strings, binary values, dates and timestamps"

    override private[read] def column(column: StructField): RowColumn.OfTensor = RowColumn.ofTensor(column)

    override private[read] def packsFiles: Boolean                 = true
    override private[read] def count(file: DataFile): Option[Long] = file.shard.flatMap(_.samples)
    override private[read] def rows(
        schema: StructType,
        needed: Vector[RowColumn],
        conditions: Conditions): FileRows =
      SampleRows(needed, schema.fields.toVector.map(column), conditions)
  }

  /** A row is a tensor with its name. */
  case object Long extends Layout("long") {
    override private[read] def hasKeys: Boolean                    = true
    override def schema: Option[StructType]                        = Some(LongSchema.schema)
    override private[read] def packsFiles: Boolean                 = true
    override private[read] def count(file: DataFile): Option[Long] = file.shard.map(_.tensors)

    override private[read] def check(column: StructField): Unit = {
      def isNamed(other: String) = SQLConf.get.resolver(column.name, other)
      val isKey                  = isNamed(LongSchema.Key.name) && column.dataType == StringType
      val isTensor               = isNamed(LongSchema.Tensor.name) && TensorStruct.matches(column.dataType)
      if (!isKey && !isTensor) throw new InvalidRequestException(
        s"Column `${column.name}` of the schema is ${column.dataType.simpleString}, but the layout `long` has only " +
          s"the columns ${LongSchema.schema.simpleString} and partition columns. Read without a schema.")
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

  /**
   * A row is a key of a dataset by key, in columns that are named as they were written. It is the layout of tables that are
   * created with columns, and no option asks for it.
   *
   * @param key       the column with the keys
   * @param separator between key and column in the name of a tensor; none if the key is the name
   */
  final case class Keyed(key: String, separator: Option[String]) extends Layout("keyed") {
    override def schema: Option[StructType]        = None
    override private[read] def packsFiles: Boolean = true
    override private[read] def hasKeys: Boolean    = separator.isEmpty

    // A file with several tensors for each row does not say how many columns it has.
    override private[read] def count(file: DataFile): Option[Long] =
      file.shard.map(_.tensors).filter(_ => separator.isEmpty)

    override private[read] def check(column: StructField): Unit =
      if (isKey(column)) column.dataType match {
        case _: StringType | ByteType | ShortType | IntegerType | LongType =>
        case other => throw new InvalidRequestException(
            s"Column `$key` of the table is ${other.simpleString}, but keys are strings or whole numbers.")
      }
      else Rows.check(column)

    override private[read] def column(column: StructField): RowColumn.OfLayout = column.dataType match {
      case _: StringType if isKey(column) => RowColumn.Key
      case number if isKey(column)        => RowColumn.NumberKey(number)
      case _                              => RowColumn.ofTensor(column)
    }

    override private[read] def operand(column: StructField, field: Option[String]): Option[Operand] =
      Option.when(hasKeys && isKey(column) && column.dataType == StringType)(Operand.Key)

    override private[read] def rows(
        schema: StructType,
        needed: Vector[RowColumn],
        conditions: Conditions): FileRows = {
      val first = schema.fields.find(!isKey(_)).map(RowColumn.ofTensor).getOrElse(
        throw new InvalidRequestException(
          s"The table has no column but the keys, `$key`. Declare one for the tensors."))
      KeyedRows(needed, separator, first, conditions)
    }

    private def isKey(column: StructField): Boolean = SQLConf.get.resolver(column.name, key)
  }

  val all: Vector[Layout] = Vector(Wide, Long, Rows)
}

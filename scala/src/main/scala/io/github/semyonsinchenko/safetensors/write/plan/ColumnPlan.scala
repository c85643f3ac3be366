package io.github.semyonsinchenko.safetensors.write.plan

import org.apache.spark.sql.types._

import io.github.semyonsinchenko.safetensors.codec.{Encoders, Rounding}
import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.{ColumnKind, ColumnRecord}
import io.github.semyonsinchenko.safetensors.format.Dtype

/**
 * A column to write.
 *
 * @param ordinal   its index in the row
 * @param kind      how its rows are stored
 * @param dtype     the dtype of its tensors; none if each Tensor Struct has its own
 * @param shape     the shape of a sample, or of a value if the kind has offsets; none if the rows say it
 * @param sparkType the name of the column's type
 * @param existing  the column in the dataset whose rows those of a batch must be like
 */
final case class ColumnPlan(
    name: String,
    ordinal: Int,
    cells: CellType,
    kind: ColumnKind,
    dtype: Option[Dtype],
    shape: Option[Seq[Int]],
    rounding: Rounding,
    sparkType: String,
    existing: Option[ColumnRecord] = None) {

  def isText: Boolean = kind == ColumnKind.Text

  /** How many tensors a shard of a batch has of this column. */
  def tensors: Int = if (kind.hasOffsets) 2 else 1

  /** Arrays are ragged where the dataset is. Tensor Structs are stored as it stores the column: those of text stay text. */
  private[plan] def appendingTo(record: ColumnRecord): ColumnPlan = cells match {
    case CellType.Tensor =>
      if (record.kind.hasOffsets) shape.foreach(_ => ColumnPlan.refuseShape(name, record.kind))
      val own = copy(existing = Some(record), sparkType = record.sparkType.getOrElse(sparkType))
      if (record.kind == ColumnKind.Fixed) own
      else own.copy(kind = record.kind)
    case _ if record.kind == ColumnKind.Ragged && canBeRagged =>
      asRagged.copy(existing = Some(record))
    case _ => copy(existing = Some(record))
  }

  /** The same with ragged rows. The options must leave it open. */
  private[plan] def asRagged: ColumnPlan =
    copy(kind = ColumnKind.Ragged, shape = ColumnPlan.valueShape(cells))

  /** Whether its rows are of one shape, but neither single values nor of a shape that the options set. */
  def canBeRagged: Boolean = kind == ColumnKind.Fixed && shape.isEmpty

  /** What the manifest says of the column. */
  def record(dtype: Option[Dtype], shape: Option[Seq[Int]]): ColumnRecord =
    ColumnRecord(name, dtype.map(_.name), shape, kind, Some(sparkType))
}

object ColumnPlan {

  /** @throws InvalidRequestException if these options cannot write a column of this type */
  private[plan] def of(
      field: StructField,
      ordinal: Int,
      mode: WriteMode,
      options: ColumnOptions): ColumnPlan = {
    val column = new Column(field, mode, options)
    ColumnPlan(field.name, ordinal, column.cells, column.kind, column.dtype, column.shape, options.rounding,
      field.dataType.catalogString)
  }

  private final class Column(field: StructField, mode: WriteMode, options: ColumnOptions) {
    private val name     = s"Column `${field.name}`"
    private val typeName = field.dataType.simpleString

    val cells: CellType = CellType.of(field.dataType).getOrElse(throw CellType.refused(field))

    val kind: ColumnKind = ColumnPlan.kind(field.dataType) match {
      case ColumnKind.Fixed if !options.ragged => ColumnKind.Fixed
      case ColumnKind.Fixed if isSingle        => refuse(noRows)
      case ColumnKind.Fixed                    => ColumnKind.Ragged
      case _ if !mode.isInstanceOf[WriteMode.Batch] =>
        refuse(
          s"$name is $typeName, which only batches store, with `batch_size`. Choose other columns with the option `columns`, or " +
            "cast it.")
      case kind if kind.hasOffsets || !options.ragged => kind
      case _                                          => refuse(noRows)
    }

    private def isSingle = cells.isInstanceOf[CellType.Scalars]

    private def noRows =
      s"Option `ragged` names `${field.name}`, which is $typeName: its rows are single values, without a dimension that could " +
        "differ. Leave it out of `ragged`."

    val dtype: Option[Dtype] = {
      val asked = options.dtype
      cells match {
        case CellType.Tensor                => asked
        case CellType.Text | CellType.Bytes => only(Dtype.U8)
        case numbers: CellType.Numbers if ColumnPlan.kind(field.dataType) != ColumnKind.Fixed =>
          only(numbers.number.dtype)
        case numbers: CellType.Numbers =>
          asked.foreach(check)
          asked.orElse(Some(numbers.number.dtype))
      }
    }

    private def check(dtype: Dtype): Unit = if (!Encoders.targets.contains(dtype)) refuse(
      s"$name holds numbers, which cannot be written as $dtype, only as: ${Encoders.targets.mkString(", ")}. " +
        "Give Tensor Structs that hold the bytes.")

    /** One name for all columns leaves out those that have no choice. */
    private def only(own: Dtype): Option[Dtype] = {
      if (options.isDtypeOfColumn) options.dtype.filter(_ != own).foreach(asked =>
        refuse(
          s"$name is $typeName, which is stored as $own, not as $asked. Leave it out of the option `dtype`."))
      Some(own)
    }

    val shape: Option[Seq[Int]] = {
      if (kind != ColumnKind.Fixed) options.shape.foreach(_ => ColumnPlan.refuseShape(field.name, kind))
      cells match {
        case _: CellType.Scalars | CellType.Text | CellType.Bytes => options.shape.orElse(Some(Nil))
        case _ if kind == ColumnKind.Ragged                       => ColumnPlan.valueShape(cells)
        case _                                                    => options.shape
      }
    }

    private def refuse(message: String): Nothing = throw new InvalidRequestException(message)
  }

  private def refuseShape(column: String, kind: ColumnKind): Nothing = throw new InvalidRequestException(
    s"Option `shapes` names `$column`, which is ${kind.name}: only columns whose rows all have one shape can be given another. " +
      "Leave it out of `shapes`.")

  /** The shape of one value of ragged rows; none if the rows say it. */
  private def valueShape(cells: CellType): Option[Seq[Int]] = cells match {
    case _: CellType.Arrays | CellType.Vectors => Some(Nil)
    case _                                     => None
  }

  /** How rows of this type are stored in batches, unless an option says otherwise. */
  private def kind(dataType: DataType): ColumnKind = dataType match {
    case _: StringType    => ColumnKind.Text
    case BinaryType       => ColumnKind.Binary
    case DateType         => ColumnKind.Date
    case TimestampType    => ColumnKind.Timestamp
    case TimestampNTZType => ColumnKind.TimestampNtz
    case _                => ColumnKind.Fixed
  }
}

/**
 * What the options say of one column.
 *
 * @param isDtypeOfColumn whether `dtype` names this column
 */
private[plan] final case class ColumnOptions(
    dtype: Option[Dtype],
    isDtypeOfColumn: Boolean,
    shape: Option[Seq[Int]],
    ragged: Boolean,
    rounding: Rounding)

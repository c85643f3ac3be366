package io.github.semyonsinchenko.safetensors.dataset

/**
 * How the rows of a column are stored as tensors, in batch mode. `format/dataset.md` defines the kinds.
 *
 * @param hasOffsets whether the values of all rows are in one tensor, and a tensor of offsets says where each row begins
 */
sealed abstract class ColumnKind(val name: String, val hasOffsets: Boolean) extends Product
    with Serializable

object ColumnKind {

  /** A value of the same shape in all rows. */
  case object Fixed extends ColumnKind("fixed", hasOffsets = false)

  /** An array whose first dimension differs by row. */
  case object Ragged extends ColumnKind("ragged", hasOffsets = true)

  /** A string, as UTF-8. */
  case object Text extends ColumnKind("text", hasOffsets = true)

  case object Binary extends ColumnKind("binary", hasOffsets = true)

  /** Days since 1970-01-01. */
  case object Date extends ColumnKind("date", hasOffsets = false)

  /** Microseconds since 1970-01-01T00:00:00Z. */
  case object Timestamp extends ColumnKind("timestamp", hasOffsets = false)

  /** A time without a time zone: microseconds, as if the time zone were UTC. */
  case object TimestampNtz extends ColumnKind("timestamp_ntz", hasOffsets = false)

  val all: Vector[ColumnKind] = Vector(Fixed, Ragged, Text, Binary, Date, Timestamp, TimestampNtz)

  /** The name of the tensor with the offsets of a column. */
  def offsetsOf(column: String): String = s"$column.offsets"
}

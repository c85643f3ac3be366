package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.types.StructType

/** What a row is. */
private[safetensors] sealed abstract class Layout(val name: String) extends Product with Serializable {

  /** Whether small files that follow each other may share a partition. */
  private[read] def packsFiles: Boolean

  /** @throws io.github.semyonsinchenko.safetensors.dataset.InvalidRequestException for a schema that it has not */
  private[read] def checkSchema(schema: StructType): Unit

  /** What of a predicate a file's header decides; none where Spark must. */
  private[read] def filter(predicate: Predicate): Option[TensorFilter]

  private[read] def rows(required: StructType, filters: Seq[TensorFilter]): FileRows
}

private[safetensors] object Layout {

  /** A file, with a column for each tensor. */
  case object Wide extends Layout("wide") {
    override private[read] def packsFiles: Boolean                   = false
    override private[read] def checkSchema(schema: StructType): Unit = WideRows.checkSchema(schema)
    override private[read] def filter(predicate: Predicate): Option[TensorFilter] = None
    override private[read] def rows(required: StructType, filters: Seq[TensorFilter]): FileRows =
      WideRows.of(required)
  }

  /** A tensor, with its name. */
  case object Long extends Layout("long") {
    override private[read] def packsFiles: Boolean                   = true
    override private[read] def checkSchema(schema: StructType): Unit = LongRows.checkSchema(schema)
    override private[read] def filter(predicate: Predicate): Option[TensorFilter] = TensorFilter.of(predicate)
    override private[read] def rows(required: StructType, filters: Seq[TensorFilter]): FileRows =
      LongRows.of(required, filters)
  }

  val all: Vector[Layout] = Vector(Wide, Long)
}

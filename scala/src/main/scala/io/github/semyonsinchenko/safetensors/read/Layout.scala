package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.types.StructType

/** What a row is. */
private[safetensors] sealed abstract class Layout(val name: String) extends Product with Serializable {

  /** Whether small files that follow each other may share a partition. */
  private[read] def packsFiles: Boolean

  /** @throws io.github.semyonsinchenko.safetensors.dataset.InvalidRequestException for a schema that it has not */
  private[read] def checkSchema(schema: StructType): Unit

  private[read] def rows(required: StructType): FileRows
}

private[safetensors] object Layout {

  /** A file, with a column for each tensor. */
  case object Wide extends Layout("wide") {
    override private[read] def packsFiles: Boolean                   = false
    override private[read] def checkSchema(schema: StructType): Unit = WideRows.checkSchema(schema)
    override private[read] def rows(required: StructType): FileRows  = WideRows.of(required)
  }

  /** A tensor, with its name. */
  case object Long extends Layout("long") {
    override private[read] def packsFiles: Boolean                   = true
    override private[read] def checkSchema(schema: StructType): Unit = LongRows.checkSchema(schema)
    override private[read] def rows(required: StructType): FileRows  = LongRows.of(required)
  }

  val all: Vector[Layout] = Vector(Wide, Long)
}

package io.github.semyonsinchenko.safetensors.dataset

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.ObjectMapper

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

  /** The entry of a shard's `__metadata__` that names the kinds of its columns, without those that are fixed. */
  val MetadataName = "column_kinds"

  /** Reads that entry. Left is what is wrong with it. */
  def parse(text: String): Either[String, Map[String, ColumnKind]] =
    try {
      val json = mapper.readTree(text)
      if (json == null || !json.isObject) Left("it is not a JSON object")
      else json.properties.asScala.foldLeft[Either[String, Map[String, ColumnKind]]](Right(Map.empty)) {
        (kinds, entry) =>
          val name = entry.getValue.asText
          for (before <- kinds; kind <- all.find(_.name == name).toRight(s"`$name` is not a kind of column"))
            yield before + (entry.getKey -> kind)
      }
    } catch { case e: JsonProcessingException => Left(e.getOriginalMessage) }

  private val mapper = new ObjectMapper
}

package io.github.semyonsinchenko.safetensors.write.shards

import java.util

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, KeyBucket}
import io.github.semyonsinchenko.safetensors.format.{Dtype, HeaderWriter, TensorInfo, Utf8Order}
import io.github.semyonsinchenko.safetensors.types.KeyBuckets
import io.github.semyonsinchenko.safetensors.write.encode.{
  InvalidCellException,
  InvalidRowException,
  KeyReader
}
import io.github.semyonsinchenko.safetensors.write.memory.Payload
import io.github.semyonsinchenko.safetensors.write.plan.{Duplicates, WriteMode, WritePlan}

/** Names tensors by their rows' keys: each cell becomes a separate tensor. */
private[write] final class KeyValueShardWriter(
    plan: WritePlan,
    mode: WriteMode.KeyValue,
    partition: Int,
    newPayload: () => Payload,
    shards: Shards)
    extends ShardWriter {
  import KeyValueShardWriter._

  private val keys =
    new KeyReader(plan.schema.fieldIndex(mode.nameColumn), plan.schema(mode.nameColumn).dataType)
  private val columns =
    plan.columns.map(new KeyValueColumn(_, mode.separator, isOnly = plan.columns.size == 1))
  private val sections = mutable.HashMap.empty[Dtype, Section]
  private val entries  = new util.HashMap[String, Entry]

  private var rows        = 0L
  private var written     = 0L
  private var bytes       = 0L
  private var headerBytes = 0L
  private var lastRow     = 0L
  private var bucket      = Option.empty[Int]

  override def write(row: InternalRow): Unit = {
    val key = InvalidRowException.locating(mode.nameColumn, place)(keys.of(row))
    val of  = bucketOf(key)
    if (rows > 0 && (isFull || of != bucket)) closeShard()
    bucket = of
    val before = bytes + headerBytes
    var i      = 0
    while (i < columns.length) {
      InvalidRowException.locating(columns(i).name, s"$place, key `$key`")(add(columns(i), key, row))
      i += 1
    }
    lastRow = bytes + headerBytes - before
    rows += 1
    written += 1
  }

  private def bucketOf(key: String): Option[Int] =
    mode.buckets.map(KeyBuckets.bucket(_, UTF8String.fromString(key)))

  // Before the row that would cross the line: rows are mostly as large as the one before.
  private def isFull: Boolean =
    bytes + headerBytes + lastRow > plan.shardBytes || headerBytes > MaxHeaderBytes

  private def place: String = s"row $written of partition $partition"

  private def add(column: KeyValueColumn, key: String, row: InternalRow): Unit = {
    val name                     = column.tensorName(key)
    val (sample, section, begin) = column.append(row, sectionOf)
    val entry                    = new Entry(name, column.name, sample.shape, begin, section.payload.size)
    section.add(entry)
    val before = entries.put(name, entry)
    if (before != null) replace(before, entry)
    bytes += entry.end - begin
    headerBytes += entryBytes(name, sample.shape)
  }

  private def replace(before: Entry, entry: Entry): Unit =
    if (before.column != entry.column) throw collision(before, entry)
    else mode.duplicates match {
      case Duplicates.Fail => throw new InvalidCellException(
          s"the key `${entry.name}` occurs twice in one shard. Make keys unique$orLastWin")
      case Duplicates.LastWin => before.replaced = true
    }

  // Rows in buckets are sorted, so none of them is the last.
  private def orLastWin = if (mode.buckets.isEmpty) ", or set `duplicatesStrategy` to `lastWin`" else ""

  /** Two keys, not one: `lastWin` would lose a tensor. */
  private def collision(before: Entry, entry: Entry) = {
    val pairs = Seq(before, entry).map(one => TensorNames.pair(one.name, mode.separator, one.column))
    new InvalidCellException(
      s"the tensor name `${entry.name}` stands for two tensors, ${pairs.mkString(" and ")}. ${TensorNames.Remedy}")
  }

  private def sectionOf(dtype: Dtype): Section =
    sections.getOrElseUpdate(dtype, new Section(dtype, newPayload()))

  override def finish(): Unit = if (rows > 0) closeShard()

  override def schema: Seq[ColumnRecord] = columns.map(_.record)

  override def close(): Unit = sections.values.foreach(_.payload.close())

  private def recorded: Option[KeyBucket] = for (count <- mode.buckets; number <- bucket) yield {
    val keys = entries.keySet.asScala
    KeyBucket.of(count, number, keys.min(Utf8Order), keys.max(Utf8Order))
  }

  private def closeShard(): Unit = {
    val sorted =
      sections.values.filterNot(_.isEmpty).toSeq.sortBy(section => (section.dtype, ""))(HeaderWriter.order)
    val placed = sorted.foldLeft(Vector.empty[TensorInfo]) {
      (before, section) => before ++ section.place(before.lastOption.fold(0L)(_.end))
    }
    shards.write(placed, entries.size.toLong / columns.size, recorded) { out =>
      sections.values.filter(_.isEmpty).foreach(_.drain(_ => ()))
      sorted.foreach(_.drain(out))
    }
    entries.clear()
    rows = 0
    bytes = 0
    headerBytes = 0
  }
}

private object KeyValueShardWriter {

  // Hosted services read headers up to 25 MB.
  private val MaxHeaderBytes = 24L * 1000 * 1000

  // Quotes, field names, dtype and two offsets of up to 10 digits.
  private val EntryOverhead = 75

  private def entryBytes(name: String, shape: Seq[Int]): Long =
    HeaderWriter.length(name) + EntryOverhead + shape.size * 5L
}

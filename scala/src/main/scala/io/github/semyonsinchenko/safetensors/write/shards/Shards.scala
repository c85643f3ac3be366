package io.github.semyonsinchenko.safetensors.write.shards

import java.nio.ByteBuffer

import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.dataset.{KeyBucket, ShardRecord}
import io.github.semyonsinchenko.safetensors.format.{HeaderWriter, TensorInfo}
import io.github.semyonsinchenko.safetensors.index.IndexRuns

/** Writes the shards of a task, and keeps their records in row order. */
private[write] final class Shards(
    metadata: Map[String, String],
    names: ShardNames,
    open: String => ShardFile,
    index: Option[IndexRuns],
    metrics: WriteCounters) {

  private val written = mutable.ArrayBuffer.empty[ShardRecord]

  def records: Seq[ShardRecord] = written.toSeq

  def indexRuns: Seq[String] = index.toSeq.flatMap(_.files)

  /**
   * Writes a shard.
   *
   * @param tensors in the order of their bytes
   * @param bucket  the bucket of its keys, if they are in one
   * @param drain   passes their bytes to its argument, in the same order
   */
  def write(tensors: Seq[TensorInfo], samples: Long, bucket: Option[KeyBucket] = None)(
      drain: (ByteBuffer => Unit) => Unit): Unit =
    metrics.shard {
      val header = HeaderWriter.bytes(metadata, tensors)
      val name   = names.next()
      val file   = open(name)
      try {
        file.write(ByteBuffer.wrap(header))
        drain(file.write)
      } finally file.close()
      index.foreach(_.add(name, tensors, header.length.toLong))
      written += ShardRecord(name, samples, file.length, header.length.toLong, file.crc32c, bucket)
      file.length
    }
}

package io.github.semyonsinchenko.safetensors.read

import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.dataset.Located
import io.github.semyonsinchenko.safetensors.read.rows.FilePart

/** Shares files out to partitions, as Spark's own sources do. */
private[read] object Packing {

  /**
   * Files that follow each other, together as long as they have no more than `maxBytes`, or than makes a partition for each
   * core. To open a file counts as much as to read `openBytes`.
   */
  def of(parts: Seq[FilePart], maxBytes: Long, openBytes: Long, cores: Int): Seq[Seq[FilePart]] = {
    val limit      = math.min(maxBytes, math.max(openBytes, parts.map(size(_) + openBytes).sum / cores))
    val partitions = mutable.ArrayBuffer.empty[mutable.ArrayBuffer[FilePart]]
    var bytes      = 0L
    parts.foreach { part =>
      if (partitions.isEmpty || bytes + size(part) > limit) {
        partitions += mutable.ArrayBuffer.empty
        bytes = 0
      }
      partitions.last += part
      bytes += size(part) + openBytes
    }
    partitions.map(_.toSeq).toSeq
  }

  private def size(part: FilePart): Long = part.located match {
    case Located.At(tensors) => tensors.iterator.map(_.size).sum
    case Located.Somewhere   => part.file.length
  }
}

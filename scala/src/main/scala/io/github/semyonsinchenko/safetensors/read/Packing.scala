package io.github.semyonsinchenko.safetensors.read

import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.dataset.DataFile

/** Shares files out to partitions, as Spark's own sources do. */
private[read] object Packing {

  /**
   * Files that follow each other, together as long as they have no more than `maxBytes`, or than makes a partition for each
   * core. To open a file counts as much as to read `openBytes`.
   */
  def of(files: Seq[DataFile], maxBytes: Long, openBytes: Long, cores: Int): Seq[Seq[DataFile]] = {
    def cost(file: DataFile) = file.length + openBytes
    val limit                = math.min(maxBytes, math.max(openBytes, files.map(cost).sum / cores))
    val partitions           = mutable.ArrayBuffer.empty[mutable.ArrayBuffer[DataFile]]
    var bytes                = 0L
    files.foreach { file =>
      if (partitions.isEmpty || bytes + file.length > limit) {
        partitions += mutable.ArrayBuffer.empty
        bytes = 0
      }
      partitions.last += file
      bytes += cost(file)
    }
    partitions.map(_.toSeq).toSeq
  }
}

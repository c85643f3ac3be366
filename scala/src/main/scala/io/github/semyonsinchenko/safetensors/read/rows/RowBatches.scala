package io.github.semyonsinchenko.safetensors.read.rows

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow

/**
 * The rows of a file, with the bytes that they lacked: of one row, or of as many as the file's source likes to be asked for
 * together. A row is good until the next one is asked for.
 */
private[read] final class RowBatches(file: OpenFile, planned: Iterator[InternalRow])
    extends Iterator[InternalRow] {

  private val ready = mutable.ArrayBuffer.empty[InternalRow]
  private var place = 0

  override def hasNext: Boolean = place < ready.length || planned.hasNext

  override def next(): InternalRow = {
    if (place == ready.length) fill()
    place += 1
    ready(place - 1)
  }

  private def fill(): Unit = {
    val memory = file.memory
    memory.reset()
    ready.clear()
    place = 0
    ready += planned.next()
    while (memory.lackingBytes > 0 && memory.lackingBytes < file.source.batchBytes && planned.hasNext)
      ready += planned.next()
    file.metrics.tensorBytes += memory.lackingBytes
    memory.fill(file.source)
  }
}

package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow

/**
 * The rows of a file, with the bytes that they lacked: of one row, or of as many as the file's source likes to be asked for
 * together. A row is good until the next one is asked for.
 */
private[read] final class RowBatches(file: OpenFile, planned: Iterator[InternalRow])
    extends Iterator[InternalRow] {

  private var ready = Iterator.empty[InternalRow]

  override def hasNext: Boolean = ready.hasNext || planned.hasNext

  override def next(): InternalRow = {
    if (!ready.hasNext) ready = batch().iterator
    ready.next()
  }

  private def batch(): Vector[InternalRow] = {
    val memory = file.memory
    memory.reset()
    val rows = Vector.newBuilder[InternalRow]
    rows += planned.next()
    while (memory.lackingBytes > 0 && memory.lackingBytes < file.source.batchBytes && planned.hasNext)
      rows += planned.next()
    file.metrics.tensorBytes += memory.lackingBytes
    memory.fill(file.source)
    rows.result()
  }
}

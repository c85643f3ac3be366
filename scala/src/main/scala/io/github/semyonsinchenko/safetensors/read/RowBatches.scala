package io.github.semyonsinchenko.safetensors.read

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow

/** Reads the bytes that rows lack: of one row, or of as many as the file's source likes to be asked for together. */
private[read] final class RowBatches(file: OpenFile, planned: Iterator[PlannedRow], metrics: TaskMetrics)
    extends Iterator[InternalRow] {

  private var ready = Iterator.empty[InternalRow]

  override def hasNext: Boolean = ready.hasNext || planned.hasNext

  override def next(): InternalRow = {
    if (!ready.hasNext) ready = batch().iterator
    ready.next()
  }

  private def batch(): Vector[InternalRow] = {
    val rows  = Vector.newBuilder[PlannedRow]
    var bytes = add(rows)
    while (bytes > 0 && bytes < file.source.batchBytes && planned.hasNext) bytes += add(rows)
    read(rows.result())
  }

  /** How many bytes the next row lacks. */
  private def add(rows: mutable.Builder[PlannedRow, _]): Long = {
    val row = planned.next()
    rows += row
    row.missing.iterator.map(_.range.count.toLong).sum
  }

  private def read(rows: Vector[PlannedRow]): Vector[InternalRow] = {
    val missing = rows.flatMap(_.missing)
    if (missing.nonEmpty) {
      file.source.readAll(missing.map(_.range)).iterator.zip(missing).foreach { case (bytes, place) =>
        place.fill(bytes)
      }
      metrics.tensorBytes += missing.iterator.map(_.range.count.toLong).sum
    }
    rows.map(_.row)
  }
}

package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.PartitionReader

import io.github.semyonsinchenko.safetensors.dataset.{DataFile, Sources}
import io.github.semyonsinchenko.safetensors.format.ByteSource

/** The rows of a partition's files, one file open at a time. */
private[read] final class FilesReader(files: Seq[DataFile], layout: FileRows, conf: Configuration)
    extends PartitionReader[InternalRow] {

  private val remaining            = files.iterator
  private var source: ByteSource   = _
  private var rows                 = Iterator.empty[InternalRow]
  private var current: InternalRow = _

  override def next(): Boolean = {
    while (!rows.hasNext && remaining.hasNext) open(remaining.next())
    val found = rows.hasNext
    if (found) current = rows.next()
    found
  }

  private def open(file: DataFile): Unit = {
    close()
    source = Sources.open(file, conf)
    rows = layout.of(source, Sources.header(source))
  }

  override def get(): InternalRow = current

  override def close(): Unit = if (source != null) {
    source.close()
    source = null
  }
}

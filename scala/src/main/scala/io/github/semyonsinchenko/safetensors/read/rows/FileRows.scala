package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.InternalRow

/** Creates the rows of a file for a layout. Sent to every task. */
private[read] trait FileRows extends Serializable {

  /** The rows, created lazily in the file's `RowMemory`. Tensor data is read into it later. */
  def of(file: OpenFile): Iterator[InternalRow]
}

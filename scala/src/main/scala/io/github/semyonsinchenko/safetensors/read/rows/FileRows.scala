package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.InternalRow

/** How a layout makes rows of a file. Goes to every task. */
private[read] trait FileRows extends Serializable {

  /** The rows, each made when it is asked for, in the file's `RowMemory`; bytes of tensors are read into it later. */
  def of(file: OpenFile): Iterator[InternalRow]
}

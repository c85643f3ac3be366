package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header}

/** How a layout makes rows of a file. Goes to every task. */
private[read] trait FileRows extends Serializable {

  /** The rows, each made when it is asked for, while the file is open. */
  def of(source: ByteSource, header: Header): Iterator[InternalRow]
}

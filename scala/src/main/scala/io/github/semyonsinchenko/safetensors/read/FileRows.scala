package io.github.semyonsinchenko.safetensors.read

/** How a layout makes rows of a file. Goes to every task. */
private[read] trait FileRows extends Serializable {

  /** The rows, each made when it is asked for, while the file is open. */
  def of(file: OpenFile): Iterator[PlannedRow]
}

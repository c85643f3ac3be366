package io.github.semyonsinchenko.safetensors.read.conditions

import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.TensorInfo
import io.github.semyonsinchenko.safetensors.read.columns.RowColumn

/**
 * The input of a condition.
 *
 * @param tensor returns the tensor of a column, or none if the column is null
 */
private[read] final case class Facts(file: DataFile, tensor: RowColumn.OfTensor => Option[TensorInfo])

private[read] object Facts {

  /** The facts that are known before a file is opened. */
  def of(file: DataFile): Facts =
    Facts(file,
      column =>
        throw new IllegalStateException(s"${file.path} is not open, but `${column.name}` was requested"))
}

package io.github.semyonsinchenko.safetensors.write.encode

import io.github.semyonsinchenko.safetensors.common.DataException

/** A row that cannot be written: which column and row, what is wrong, and what to do. */
final class InvalidRowException(message: String) extends DataException(message, "SAFETENSORS_INVALID_ROW")

/** What is wrong with a cell; the caller adds the column and the row. */
private[write] final class InvalidCellException(message: String)
    extends RuntimeException(message, null, false, false)

private[write] object InvalidRowException {

  /** Says of a cell that is wrong where it is: in which column, and in which row, as `place` tells. */
  def locating[A](column: String, place: => String)(cell: => A): A =
    try cell
    catch {
      case e: InvalidCellException =>
        throw new InvalidRowException(s"Column `$column`, $place: ${e.getMessage}.")
    }
}

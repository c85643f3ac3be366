package io.github.semyonsinchenko.safetensors.write.encode

import io.github.semyonsinchenko.safetensors.common.DataException

/** A row that cannot be written. The message names the column, the row, the error and the fix. */
final class InvalidRowException(message: String) extends DataException(message, "SAFETENSORS_INVALID_ROW")

/** An invalid cell. The caller adds the column and the row. */
private[write] final class InvalidCellException(message: String)
    extends RuntimeException(message, null, false, false)

private[write] object InvalidRowException {

  /** Adds the column and the row, described by `place`, to the error of a cell. */
  def locating[A](column: String, place: => String)(cell: => A): A =
    try cell
    catch {
      case e: InvalidCellException =>
        throw new InvalidRowException(s"Column `$column`, $place: ${e.getMessage}.")
    }
}

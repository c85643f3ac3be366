package io.github.semyonsinchenko.safetensors.common

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.AnalysisException

/** An invalid request of the user, found on the driver before any task runs. */
class InvalidRequestException(message: String, cause: Option[Throwable] = None)
    extends AnalysisException(message, None, None, cause, None, Map.empty[String, String], Array.empty)

/** A path that has no data to read. */
final class NoDataException(message: String) extends InvalidRequestException(message)

object NoDataException {
  def at(path: Path) = new NoDataException(s"Path does not exist: $path.")
}

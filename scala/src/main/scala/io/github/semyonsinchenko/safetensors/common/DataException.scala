package io.github.semyonsinchenko.safetensors.common

import org.apache.spark.SparkThrowable

/**
 * A fault in the user's data, met while a task runs.
 *
 * Spark hands an error that has a condition to the user as it is, and wraps every other in a report of the aborted job
 * with stack traces. As an `IllegalArgumentException` it reaches Python under that name too.
 *
 * @param condition a name for programs to tell errors by
 */
abstract class DataException(message: String, condition: String, cause: Throwable = null)
    extends IllegalArgumentException(message, cause)
    with SparkThrowable {

  override def getCondition: String = condition

  // Spark would look the condition up in its own list. 22000 is "data exception".
  override def getSqlState: String = "22000"

  // The message says it all; executors would log the frames behind it.
  override def fillInStackTrace(): Throwable = this
}

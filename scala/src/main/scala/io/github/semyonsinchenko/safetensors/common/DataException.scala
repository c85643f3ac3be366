package io.github.semyonsinchenko.safetensors.common

import org.apache.spark.SparkThrowable

/**
 * An error in the user's data, found while a task runs.
 *
 * Spark shows an error that has a condition to the user unchanged. It wraps any other error in a report of the aborted job
 * with stack traces. PySpark raises an `IllegalArgumentException` under the same name.
 *
 * @param condition the name by which programs recognize the error
 */
abstract class DataException(message: String, condition: String, cause: Throwable = null)
    extends IllegalArgumentException(message, cause)
    with SparkThrowable {

  override def getCondition: String = condition

  // Without this, Spark looks for the condition in its own list. 22000 is "data exception".
  override def getSqlState: String = "22000"

  // The message is complete; executors would log the stack frames.
  override def fillInStackTrace(): Throwable = this
}

package io.github.semyonsinchenko.safetensors

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions, SparkSessionExtensionsProvider}

import io.github.semyonsinchenko.safetensors.functions.TensorFunctions

/**
 * Adds the tensor functions to a session: `arr_to_st`, `st_to_array`, `st_to_array_double`, `st_to_array_long`.
 *
 * Spark finds it by itself when the jar is there (ServiceLoader), and by the setting
 * `spark.sql.extensions=io.github.semyonsinchenko.safetensors.SafetensorsExtensions`. Both at once do no harm.
 */
class SafetensorsExtensions extends SparkSessionExtensionsProvider {

  override def apply(extensions: SparkSessionExtensions): Unit =
    TensorFunctions.all.foreach(extensions.injectFunction)

  /** Adds them to a session that was there before the jar, which extensions no longer reach. */
  def register(session: SparkSession): Unit = {
    val registry = session.sessionState.functionRegistry
    // By this method, though it drops the documentation: what a full name is differs between Spark versions.
    TensorFunctions.all.foreach { case (id, _, build) =>
      registry.createOrReplaceTempFunction(id.funcName, build, "scala_udf")
    }
  }
}

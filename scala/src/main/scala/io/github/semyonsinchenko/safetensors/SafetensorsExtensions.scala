package io.github.semyonsinchenko.safetensors

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions, SparkSessionExtensionsProvider}

import io.github.semyonsinchenko.safetensors.functions.TensorFunctions

/**
 * Adds the tensor functions to a session: `arr_to_st`, `st_to_array`, `st_to_array_double`, `st_to_array_long`, `st_show`.
 *
 * Spark finds it in the jar through ServiceLoader, or through the setting
 * `spark.sql.extensions=io.github.semyonsinchenko.safetensors.SafetensorsExtensions`. Using both is harmless.
 */
class SafetensorsExtensions extends SparkSessionExtensionsProvider {

  override def apply(extensions: SparkSessionExtensions): Unit =
    TensorFunctions.all.foreach(extensions.injectFunction)

  /** Adds them to a session that was started before the jar was added. Extensions do not apply to it any more. */
  def register(session: SparkSession): Unit = {
    val registry = session.sessionState.functionRegistry
    // This method drops the documentation. The others need a full name, which differs between Spark versions.
    TensorFunctions.all.foreach { case (id, _, build) =>
      registry.createOrReplaceTempFunction(id.funcName, build, "scala_udf")
    }
  }
}

package io.github.semyonsinchenko.safetensors.read.columns

import org.apache.spark.sql.types.{StringType, StructField, StructType}

import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** The columns of the layout `long`. */
private[safetensors] object LongSchema {

  val Key: StructField    = StructField("tensor_key", StringType, nullable = false)
  val Tensor: StructField = StructField("tensor", TensorStruct.dataType, nullable = false)

  val schema: StructType = StructType(Seq(Key, Tensor))
}

package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.connector.catalog.functions.{BoundFunction, ScalarFunction, UnboundFunction}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.types.KeyBuckets

/** `bucket(buckets, key)`: the bucket of a key. Spark calls it by this name to compare how two tables are partitioned. */
private[functions] object Bucket extends UnboundFunction {

  val Name = "bucket"

  override def name(): String = Name

  override def description(): String =
    s"$Name(buckets, key) - the bucket, from 0 on, that the option `key_buckets` puts a key in: `pmod(hash(key), buckets)`"

  override def bind(inputs: StructType): BoundFunction = inputs.map(_.dataType) match {
    case Seq(IntegerType, StringType) => new BoundBucket
    case types => throw new UnsupportedOperationException(
        s"expected an int and a string, but got ${types.map(_.simpleString).mkString("(", ", ", ")")}")
  }
}

final class BoundBucket extends ScalarFunction[Integer] {

  override def name(): String                = Bucket.Name
  override def canonicalName(): String       = s"safetensors.${Bucket.Name}"
  override def inputTypes(): Array[DataType] = Array(IntegerType, StringType)
  override def resultType(): DataType        = IntegerType
  override def isResultNullable: Boolean     = false
  override def toString: String              = name()

  def invoke(buckets: Int, key: UTF8String): Int = KeyBuckets.bucket(buckets, key)
}

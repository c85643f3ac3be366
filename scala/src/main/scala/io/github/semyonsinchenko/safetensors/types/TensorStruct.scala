package io.github.semyonsinchenko.safetensors.types

import org.apache.spark.sql.types._

/** The one Spark type that stands for a tensor, in what is read, what is written, and in functions. */
object TensorStruct {

  /**
   * `data`: the elements' little-endian bytes, row-major, as in the byte buffer; `shape`: the dimensions, empty
   * for a scalar; `dtype`: the format's name for the element type.
   */
  val dataType: StructType = StructType(Seq(
      StructField("data", BinaryType, nullable = false),
      StructField("shape", ArrayType(IntegerType), nullable = false),
      StructField("dtype", StringType, nullable = false)
    ))

  /** The most bytes that `data` has: the longest array that every JVM gives. */
  val MaxBytes: Int = Int.MaxValue - 15

  val Data  = 0
  val Shape = 1
  val Dtype = 2

  /** Whether a column of this type holds tensors, whatever its fields' nullability. */
  def matches(other: DataType): Boolean = other match {
    case StructType(Array(data, shape, dtype)) =>
      data.name == "data" && data.dataType == BinaryType &&
        shape.name == "shape" && isIntArray(shape.dataType) &&
        dtype.name == "dtype" && dtype.dataType.isInstanceOf[StringType]
    case _ => false
  }

  private def isIntArray(other: DataType): Boolean = other match {
    case ArrayType(IntegerType, _) => true
    case _                         => false
  }
}

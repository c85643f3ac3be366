package io.github.semyonsinchenko.safetensors.types

import java.nio.ByteBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._

/** The Spark type of a tensor, for reads, writes and functions. */
object TensorStruct {

  /**
   * `data`: the little-endian bytes of the elements in row-major order, as in the byte buffer; `shape`: the dimensions, empty
   * for a scalar; `dtype`: the name of the element type in the format.
   */
  val dataType: StructType = StructType(Seq(
      StructField("data", BinaryType, nullable = false),
      StructField("shape", ArrayType(IntegerType), nullable = false),
      StructField("dtype", StringType, nullable = false)
    ))

  /** The maximum size of `data` in bytes: the longest array that every JVM can allocate. */
  val MaxBytes: Int = Int.MaxValue - 15

  val Data  = 0
  val Shape = 1
  val Dtype = 2

  /** Whether the type is the Tensor Struct. Nullability of its fields does not matter. */
  def matches(other: DataType): Boolean = other match {
    case StructType(Array(data, shape, dtype)) =>
      data.name == "data" && data.dataType == BinaryType &&
        shape.name == "shape" && isIntArray(shape.dataType) &&
        dtype.name == "dtype" && dtype.dataType.isInstanceOf[StringType]
    case _ => false
  }

  /** The bytes of a struct's `data`. If they are in the memory of a row, they are not copied. */
  def data(struct: InternalRow): ByteBuffer = RowBytes.of(struct, Data)

  private def isIntArray(other: DataType): Boolean = other match {
    case ArrayType(IntegerType, _) => true
    case _                         => false
  }
}

package io.github.semyonsinchenko.safetensors.functions

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeArrayData}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.codec.{Encoders, Rounding, UnencodableValueException}
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.{NumberType, TensorStruct}

/** Evaluates `arr_to_st` for a row, for interpreted and generated code. */
final class ArrayToTensor(array: ArrayType) extends Serializable {
  import ArrayToTensor._

  private val number = NumberType.of(array.elementType).get

  // A cache per task, because each row may name another dtype.
  @transient private lazy val targets: Map[(UTF8String, UTF8String), Target] = (for {
    dtype    <- Encoders.targets
    rounding <- Rounding.all
    name = UTF8String.fromString(dtype.name)
  } yield (name, UTF8String.fromString(rounding.name)) ->
    new Target(dtype, name, number.encoder(dtype, rounding))).toMap

  /** The Tensor Struct of the numbers. The arguments are not null. */
  def apply(numbers: ArrayData, shape: ArrayData, dtype: UTF8String, rounding: UTF8String): InternalRow = {
    val target = targets.getOrElse((dtype, rounding), refuse(dtype, rounding))
    val dims   = orRefuse(Arguments.shape(shape))
    orRefuse(Arguments.count(dims, numbers.numElements()))
    if (array.containsNull) refuseNulls(numbers)
    new GenericInternalRow(Array[Any](target.bytes(numbers), UnsafeArrayData.fromPrimitiveArray(dims),
      target.name))
  }

  private def refuse(dtype: UTF8String, rounding: UTF8String): Nothing = {
    orRefuse(Arguments.dtype(dtype.toString))
    orRefuse(Arguments.rounding(rounding.toString))
    throw new IllegalStateException(s"No encoder for dtype $dtype and rounding $rounding.")
  }

  private def refuseNulls(numbers: ArrayData): Unit = {
    val index = NumberType.indexOfNull(numbers)
    if (index >= 0) throw error(
      s"the array's element at index $index is null, and tensors have no nulls. Fill or drop them first.")
  }
}

private[functions] object ArrayToTensor {

  val FunctionName = "arr_to_st"

  def takes(elementType: DataType): Boolean = NumberType.of(elementType).isDefined

  private final class Target(dtype: Dtype, val name: UTF8String, encode: NumberType.Encode) {

    def bytes(numbers: ArrayData): Array[Byte] = {
      val length = numbers.numElements().toLong * dtype.bits / 8
      if (length > TensorStruct.MaxBytes)
        throw error(
          s"${numbers.numElements()} elements of $dtype are $length bytes, more than Spark's binary holds.")
      val out = new Array[Byte](length.toInt)
      try encode(numbers, ByteBuffer.wrap(out).order(ByteOrder.LITTLE_ENDIAN))
      catch { case e: UnencodableValueException => throw error(s"${e.getMessage}.") }
      out
    }
  }

  private def orRefuse[T](checked: Either[String, T]): T =
    checked.fold(message => throw error(message), identity)

  private def error(message: String): Throwable = new InvalidTensorException(FunctionName, message)
}

package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.ArrayType

import io.github.semyonsinchenko.safetensors.codec.{Decoders, UnencodableValueException}
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/**
 * Evaluates the `st_to_array` functions for a row, for interpreted and generated code.
 *
 * An F32 vector of a file is copied three times until it is an `array<float>`: from the map to the row, because Spark keeps rows
 * in its own memory; here to an array, which has a count and null bits before its elements; and by Spark, which writes the
 * results of expressions to a row.
 */
final class TensorToArray(elements: Elements) extends Serializable {

  /** The elements of a Tensor Struct. The struct is not null. */
  def apply(tensor: InternalRow): ArrayData = {
    for ((name, field) <- TensorToArray.fields)
      if (tensor.isNullAt(field)) throw error(s"the tensor's `$name` is null.")
    val dtype = knownDtype(tensor.getUTF8String(TensorStruct.Dtype).toString)
    val decoder = Decoders.of(dtype).getOrElse(throw error(
        s"$dtype elements cannot be decoded to ${elements.dataType.sql}. Select the tensor's `data` and decode it in Python."))
    val bytes = TensorStruct.data(tensor)
    checkLength(bytes.remaining, dtype, tensor.getArray(TensorStruct.Shape))
    try elements.array(dtype, decoder, bytes)
    catch { case e: UnencodableValueException => throw error(s"${e.getMessage}.") }
  }

  private def knownDtype(name: String): Dtype = Dtype.of(name).getOrElse(throw error(
      s"the tensor's dtype is `$name`, which does not exist. Use one of ${Decoders.sources.mkString(", ")}."))

  private def checkLength(bytes: Int, dtype: Dtype, shape: ArrayData): Unit = {
    val dims  = Arguments.shape(shape).fold(message => throw error(message), identity)
    val count = Arguments.elements(dims)
    if (count * dtype.bits / 8 != bytes) throw error(
      s"the tensor's `data` has $bytes bytes, but ${Arguments.text(dims)} of $dtype takes " +
        s"${Arguments.product(dims) * dtype.bits / 8}.")
    if (count * elements.dataType.defaultSize > TensorStruct.MaxBytes) throw error(
      s"$count elements are more than Spark's ${ArrayType(elements.dataType).sql} holds.")
  }

  private def error(message: String): Throwable = new InvalidTensorException(elements.function, message)
}

private object TensorToArray {
  val fields: Seq[(String, Int)] =
    Seq("data" -> TensorStruct.Data, "shape" -> TensorStruct.Shape, "dtype" -> TensorStruct.Dtype)
}

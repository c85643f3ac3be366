package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.ArrayType

import io.github.semyonsinchenko.safetensors.codec.{Decoders, UnencodableValueException}
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/**
 * Evaluates the `st_to_array` functions for a row, for interpreted and generated code.
 *
 * An F32 vector of a file is copied three times until it is an `array<float>`: from the map to the row, because Spark keeps rows
 * in its own memory; here to an array, which has a count and null bits before its elements; and by Spark, which writes the
 * results of expressions to a row.
 */
final class TensorToArray(elements: Elements) extends Serializable {

  private val argument = new TensorArgument(elements.function, Decoders.sources)

  /** The elements of a Tensor Struct. The struct is not null. */
  def apply(tensor: InternalRow): ArrayData = {
    val dtype = argument.dtype(tensor)
    val decoder = Decoders.of(dtype).getOrElse(throw argument.error(
        s"$dtype elements cannot be decoded to ${elements.dataType.sql}. Select the tensor's `data` and decode it in Python."))
    val shape = argument.shape(tensor)
    val bytes = argument.data(tensor, dtype, shape)
    checkCount(Arguments.elements(shape))
    try elements.array(dtype, decoder, bytes)
    catch { case e: UnencodableValueException => throw argument.error(s"${e.getMessage}.") }
  }

  private def checkCount(count: Long): Unit =
    if (count * elements.dataType.defaultSize > TensorStruct.MaxBytes) throw argument.error(
      s"$count elements are more than Spark's ${ArrayType(elements.dataType).sql} holds.")
}

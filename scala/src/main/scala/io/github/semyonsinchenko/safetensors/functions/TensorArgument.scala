package io.github.semyonsinchenko.safetensors.functions

import java.nio.ByteBuffer

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/**
 * Reads the fields of a function's tensor, and checks that they agree. The struct is not null.
 *
 * @param dtypes the dtypes that the function takes, for its errors
 */
private[functions] final class TensorArgument(function: String, dtypes: Seq[Dtype]) extends Serializable {

  /** The dtype of a struct without null fields. */
  def dtype(tensor: InternalRow): Dtype = {
    for ((name, field) <- TensorArgument.fields)
      if (tensor.isNullAt(field)) throw error(s"the tensor's `$name` is null.")
    val name = tensor.getUTF8String(TensorStruct.Dtype).toString
    Dtype.of(name).getOrElse(throw error(
        s"the tensor's dtype is `$name`, which does not exist. Use one of ${dtypes.mkString(", ")}."))
  }

  def shape(tensor: InternalRow): Array[Int] =
    Arguments.shape(tensor.getArray(TensorStruct.Shape)).fold(message => throw error(message), identity)

  /** The bytes, as many as the dtype and the shape take. */
  def data(tensor: InternalRow, dtype: Dtype, shape: Array[Int]): ByteBuffer = {
    val bytes = TensorStruct.data(tensor)
    val bits  = Arguments.elements(shape) * dtype.bits
    if (bits % 8 != 0) throw error(s"${Arguments.text(shape)} of $dtype is not a whole number of bytes.")
    if (bits / 8 != bytes.remaining) throw error(
      s"the tensor's `data` has ${bytes.remaining} bytes, but ${Arguments.text(shape)} of $dtype takes " +
        s"${Arguments.product(shape) * dtype.bits / 8}.")
    bytes
  }

  def error(message: String): Throwable = new InvalidTensorException(function, message)
}

private object TensorArgument {
  val fields: Seq[(String, Int)] =
    Seq("data" -> TensorStruct.Data, "shape" -> TensorStruct.Shape, "dtype" -> TensorStruct.Dtype)
}

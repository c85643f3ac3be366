package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeArrayData}
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.dataset.{TensorStruct, UnreadableFileException}
import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header, TensorInfo}

/** A tensor as a Tensor Struct, with the fields that the query needs and no more: bytes are read only for `data`. */
private[read] object TensorRow {

  def of(source: ByteSource, header: Header, tensor: TensorInfo, fields: Vector[TensorField]): InternalRow =
    new GenericInternalRow(fields.map {
      case TensorField.Data  => data(source, header, tensor)
      case TensorField.Shape => shape(source, tensor)
      case TensorField.Dtype => UTF8String.fromString(tensor.dtype.name)
    }.toArray[Any])

  // The one copy of the tensor's bytes: Spark's binary value is an array.
  private def data(source: ByteSource, header: Header, tensor: TensorInfo): Array[Byte] = {
    if (tensor.size > TensorStruct.MaxBytes) throw new UnreadableFileException(
      s"${source.name}: tensor `${tensor.name}` has ${tensor.size} bytes, and a binary value holds at most ${TensorStruct.MaxBytes}. " +
        "Select its `shape` and `dtype` only.")
    source.bytes(header.dataStart + tensor.begin, tensor.size.toInt)
  }

  private def shape(source: ByteSource, tensor: TensorInfo): UnsafeArrayData = {
    if (!tensor.shape.forall(dim => dim >= 0 && dim <= Int.MaxValue)) throw new UnreadableFileException(
      s"${source.name}: tensor `${tensor.name}` has a dimension that no integer holds: " +
        s"${tensor.shape.map(java.lang.Long.toUnsignedString).mkString("[", ", ", "]")}. Select its other fields only.")
    UnsafeArrayData.fromPrimitiveArray(tensor.shape.iterator.map(_.toInt).toArray)
  }
}

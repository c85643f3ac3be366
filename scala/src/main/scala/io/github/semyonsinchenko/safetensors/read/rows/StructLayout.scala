package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.expressions.{UnsafeArrayData, UnsafeRow}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.read.columns.TensorField

/**
 * Tensor Structs of one dtype, shape and size as Spark's `UnsafeRow`s. Their bytes must equal those of rows that Spark
 * creates, because Spark compares rows by bytes. Only `data` differs; the bytes before and after it are created once.
 *
 * @param bytes the size of `data`
 */
private[rows] final class StructLayout(
    fields: Vector[TensorField],
    dtype: Dtype,
    shape: IndexedSeq[Long],
    bytes: Long) {
  import StructLayout._

  private val before = part(fields.takeWhile(_ != TensorField.Data), wordsOf(fields.length))
  private val after  = part(fields.dropWhile(_ != TensorField.Data).drop(1), 0)

  // Spark pads the last word of a field with zeros.
  private val padding = if (hasData) (padded(bytes) - bytes).toInt else 0

  def hasData: Boolean = fields.contains(TensorField.Data)

  /** The offset of `data`. */
  def dataStart: Int = before.length

  val size: Int = StructLayout.size(fields, dtype, shape, bytes).toInt

  writeWords()

  def fits(dtype: Dtype, shape: IndexedSeq[Long], bytes: Long): Boolean =
    bytes == this.bytes && dtype == this.dtype && (shape.eq(this.shape) || shape == this.shape)

  /** Writes everything except `data`. */
  def write(array: Array[Byte], place: Int): Unit = {
    System.arraycopy(before, 0, array, place, before.length)
    val end = place + size - after.length
    java.util.Arrays.fill(array, end - padding, end, 0.toByte)
    System.arraycopy(after, 0, array, end, after.length)
  }

  /** The values of the fields, after `words` bytes for the words of all fields. */
  private def part(some: Vector[TensorField], words: Int): Array[Byte] = {
    val array = new Array[Byte](words + some.map(lengthOf(_, dtype, shape, bytes)).map(padded).sum.toInt)
    var at    = words
    some.foreach { field =>
      write(field, array, Platform.BYTE_ARRAY_OFFSET.toLong + at)
      at += padded(lengthOf(field, dtype, shape, bytes)).toInt
    }
    array
  }

  private def write(field: TensorField, array: Array[Byte], offset: Long): Unit = field match {
    case TensorField.Shape =>
      UnsafeArrayData.fromPrimitiveArray(shape.iterator.map(_.toInt).toArray).writeToMemory(array, offset)
    case TensorField.Dtype => dtypes(dtype).writeToMemory(array, offset)
    case TensorField.Data  => ()
  }

  // The null bits stay zero. The word of a field holds its offset and length.
  private def writeWords(): Unit = {
    val first = wordsOf(fields.length) - 8 * fields.length
    var at    = wordsOf(fields.length).toLong
    fields.zipWithIndex.foreach { case (field, i) =>
      val length = lengthOf(field, dtype, shape, bytes)
      Platform.putLong(before, Platform.BYTE_ARRAY_OFFSET.toLong + first + 8 * i, at << 32 | length)
      at += padded(length)
    }
  }
}

private[rows] object StructLayout {
  private val dtypes: Map[Dtype, UTF8String] =
    Dtype.all.map(dtype => dtype -> UTF8String.fromString(dtype.name)).toMap

  /** The size of the struct. It may exceed the maximum array size. */
  def size(fields: Vector[TensorField], dtype: Dtype, shape: IndexedSeq[Long], bytes: Long): Long =
    wordsOf(fields.length) + fields.iterator.map(field => padded(lengthOf(field, dtype, shape, bytes))).sum

  private def lengthOf(field: TensorField, dtype: Dtype, shape: IndexedSeq[Long], bytes: Long): Long =
    field match {
      case TensorField.Data => bytes
      case TensorField.Shape =>
        padded(UnsafeArrayData.calculateHeaderPortionInBytes(shape.length) + 4L * shape.length)
      case TensorField.Dtype => dtypes(dtype).numBytes.toLong
    }

  /** The size of the null bits and of one word per field. */
  private def wordsOf(fields: Int): Int = UnsafeRow.calculateBitSetWidthInBytes(fields) + 8 * fields

  private def padded(count: Long): Long = (count + 7) / 8 * 8
}

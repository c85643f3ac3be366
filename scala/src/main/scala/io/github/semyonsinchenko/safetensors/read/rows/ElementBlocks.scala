package io.github.semyonsinchenko.safetensors.read.rows

import java.nio.{ByteBuffer, ByteOrder}

import io.github.semyonsinchenko.safetensors.codec.{Conversion, UnencodableValueException}
import io.github.semyonsinchenko.safetensors.format.TensorInfo
import io.github.semyonsinchenko.safetensors.storage.UnreadableFileException

/**
 * Single elements of a tensor, for values that must be known when a row is made. Read in blocks, as they are asked for in
 * ascending order.
 *
 * @param size       the size of a number in bytes
 * @param conversion from the tensor's elements to those numbers, if they differ
 */
private[rows] final class ElementBlocks(
    file: OpenFile,
    tensor: TensorInfo,
    size: Int,
    conversion: Option[Conversion] = None) {
  import ElementBlocks._

  private val elementSize = tensor.dtype.bits / 8
  private val start       = file.start(tensor)
  private var first       = 0L
  private var count       = 0
  private var array       = Array.emptyByteArray
  private var numbers     = ByteBuffer.wrap(array)

  /** Where a number is in `numbers`. */
  private def at(index: Long, end: Long): Int = {
    if (index < first || index >= first + count) load(index, end)
    (index - first).toInt * size
  }

  /** @param end how many elements of the tensor may be asked for */
  def long(index: Long, end: Long): Long = { val place = at(index, end); numbers.getLong(place) }

  def int(index: Long, end: Long): Int = { val place = at(index, end); numbers.getInt(place) }

  def short(index: Long, end: Long): Short = { val place = at(index, end); numbers.getShort(place) }

  def byte(index: Long, end: Long): Byte = { val place = at(index, end); numbers.get(place) }

  def float(index: Long, end: Long): Float = { val place = at(index, end); numbers.getFloat(place) }

  def double(index: Long, end: Long): Double = { val place = at(index, end); numbers.getDouble(place) }

  private def load(index: Long, end: Long): Unit = {
    count = 0
    val wider = math.max(size, elementSize)
    val next  = math.min(end - index, (BlockBytes / wider).toLong).toInt
    if (array.length < next * wider) {
      array = new Array[Byte](next * wider)
      // What is not converted is little-endian still.
      numbers = ByteBuffer.wrap(array).order(
        if (conversion.isEmpty) ByteOrder.LITTLE_ENDIAN else ByteOrder.nativeOrder)
    }
    val from = next * wider - next * elementSize
    file.source.read(start + index * elementSize, array, from, next * elementSize)
    file.metrics.tensorBytes += next.toLong * elementSize
    try conversion.foreach(_(array, from, 0, next))
    catch {
      case e: UnencodableValueException =>
        throw new UnreadableFileException(
          s"${file.file.path}: tensor `${tensor.name}`, row ${index + e.index}: the column's type cannot hold ${e.value}. Read the " +
            "column without decoding it.")
    }
    first = index
    count = next
  }
}

private object ElementBlocks {

  // A request of a far file system, or a system call, for many rows.
  private val BlockBytes = 256 << 10
}

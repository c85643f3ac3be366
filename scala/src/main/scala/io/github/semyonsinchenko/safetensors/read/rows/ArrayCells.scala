package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
import org.apache.spark.unsafe.Platform

import io.github.semyonsinchenko.safetensors.codec.{Conversion, UnencodableValueException}
import io.github.semyonsinchenko.safetensors.format.{ByteCopy, Dtype}
import io.github.semyonsinchenko.safetensors.storage.UnreadableFileException
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/**
 * Arrays in the memory of Spark's own rows. The bytes of a file are read to the place of the elements, and converted there if
 * they differ.
 *
 * @param to    the dtype with the same values as the elements
 * @param depth the number of nested arrays; with 1, all elements of a row are in one array
 */
private[rows] final class ArrayCells(slices: RowSlices, to: Dtype, depth: Int) {
  import ArrayCells._

  private val file        = slices.file
  private val from        = slices.tensor.dtype
  private val conversion  = Conversion.of(from, to)
  private val elementSize = from.bits / 8
  private val numberSize  = to.bits / 8

  def array(row: Long): UnsafeArrayData = if (depth == 1) flat(row) else nested(row)

  private def flat(row: Long): UnsafeArrayData = {
    val size  = slices.size(row)
    val count = size / elementSize
    val total = sizeOf(count, numberSize)
    checkSize(row, math.max(total, headerOf(count) + size))
    val room   = math.max(total, headerOf(count) + padded(size)).toInt
    val place  = file.memory.reserve(room)
    val memory = file.memory.chunk
    val start  = place + headerOf(count).toInt
    writeHeader(memory, place, count)
    val wider = math.max(count * numberSize, size).toInt
    val put   = start + wider - size.toInt
    java.util.Arrays.fill(memory, start + (count * numberSize).toInt, place + total.toInt, 0.toByte)
    file.memory.lacks(ByteCopy(slices.start(row), size.toInt, memory, put))
    conversion.foreach(convert =>
      file.memory.afterwards(() => {
        converting(row)(convert(memory, put, start, count.toInt))
        java.util.Arrays.fill(memory, start + (count * numberSize).toInt, place + total.toInt, 0.toByte)
      }))
    pointTo(memory, place, total)
  }

  /** Elements are copied once more, as each of the innermost arrays has a header before its own. */
  private def nested(row: Long): UnsafeArrayData = {
    val size   = slices.size(row)
    val levels = new Levels(slices.shape(row), numberSize)
    checkSize(row, levels.size(0) + padded(size))
    val total  = levels.size(0)
    val place  = file.memory.reserve(total.toInt + padded(size).toInt)
    val memory = file.memory.chunk
    val put    = place + total.toInt
    file.memory.lacks(ByteCopy(slices.start(row), size.toInt, memory, put))
    // Spark looks at the count as soon as it has the array.
    writeHeader(memory, place, levels.dims(0))
    file.memory.afterwards(() => {
      converting(row)(write(memory, place, put, levels, 0))
      ()
    })
    pointTo(memory, place, total)
  }

  /** Returns where the elements behind those of this array begin. */
  private def write(memory: Array[Byte], place: Int, elements: Int, levels: Levels, level: Int): Int = {
    val count = levels.dims(level).toInt
    writeHeader(memory, place, count)
    val first = place + headerOf(count).toInt
    if (level == levels.last) {
      if (conversion.isEmpty) System.arraycopy(memory, elements, memory, first, count * numberSize)
      else conversion.get(memory, elements, first, count)
      java.util.Arrays.fill(memory, first + count * numberSize,
        first + padded(count * numberSize.toLong).toInt,
        0.toByte)
      elements + count * elementSize
    } else {
      val inner = levels.size(level + 1)
      var from  = elements
      var i     = 0
      while (i < count) {
        val at = first + 8 * count + i * inner.toInt
        Platform.putLong(memory, Platform.BYTE_ARRAY_OFFSET.toLong + first + 8 * i,
          (at - place).toLong << 32 | inner)
        from = write(memory, at, from, levels, level + 1)
        i += 1
      }
      from
    }
  }

  private def converting[A](row: Long)(convert: => A): A =
    try convert
    catch {
      case e: UnencodableValueException =>
        throw unreadable(slices, s"row $row: the column's type cannot hold ${e.value}")
    }

  private def checkSize(row: Long, size: Long): Unit = if (size > TensorStruct.MaxBytes) throw unreadable(
    slices,
    s"row $row has ${slices.size(row)} bytes, and an array of Spark's holds at most ${TensorStruct.MaxBytes}")
}

private[rows] object ArrayCells {

  def unreadable(slices: RowSlices, what: String) = new UnreadableFileException(
    s"${slices.file.file.path}: tensor `${slices.tensor.name}`, $what. Read the column without decoding it.")

  /** The sizes of nested arrays of one shape. */
  private final class Levels(val dims: IndexedSeq[Long], numberSize: Int) {
    val last: Int = dims.size - 1

    private val sizes: IndexedSeq[Long] =
      dims.init.scanRight(sizeOf(dims.last, numberSize)) { (count, inner) =>
        headerOf(count) + 8 * count + count * inner
      }

    def size(level: Int): Long = sizes(level)
  }

  private def padded(size: Long): Long = (size + 7) / 8 * 8

  /** The count, and a bit for each element. */
  private def headerOf(count: Long): Long = 8 + (count + 63) / 64 * 8

  private def sizeOf(count: Long, numberSize: Int): Long = headerOf(count) + padded(count * numberSize)

  private def writeHeader(memory: Array[Byte], place: Int, count: Long): Unit = {
    Platform.putLong(memory, Platform.BYTE_ARRAY_OFFSET.toLong + place, count)
    java.util.Arrays.fill(memory, place + 8, place + headerOf(count).toInt, 0.toByte)
  }

  private def pointTo(memory: Array[Byte], place: Int, size: Long): UnsafeArrayData = {
    val array = new UnsafeArrayData
    array.pointTo(memory, Platform.BYTE_ARRAY_OFFSET.toLong + place, size.toInt)
    array
  }
}

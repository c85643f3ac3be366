package io.github.semyonsinchenko.safetensors.codec

import java.nio.{ByteBuffer, ByteOrder}

import scala.collection.concurrent.TrieMap

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

/**
 * Converts the elements of a tensor, which are little-endian, to numbers in the machine's byte order.
 *
 * Both may be in the same place of one array: wider numbers if the elements end where the numbers end, others if the elements
 * begin where the numbers begin.
 */
abstract class Conversion {

  /**
   * @param from  where the elements begin
   * @param to    where the numbers begin
   * @param count the number of elements
   * @throws UnencodableValueException for an element that the numbers cannot hold
   */
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit
}

object Conversion {

  /** The dtypes whose elements are the numbers of the machine. */
  val targets: Vector[Dtype] = Vector(BOOL, I8, I16, I32, I64, F32, F64)

  /** The dtypes whose elements are numbers. */
  def sources: Vector[Dtype] = Decoders.sources

  /**
   * The conversion of `from`, one of [[sources]], to `to`, one of [[targets]]. None if the bytes are the same. Floating-point
   * numbers are rounded to nearest.
   */
  def of(from: Dtype, to: Dtype): Option[Conversion] =
    if (from == to && from != BOOL && ByteOrder.nativeOrder == ByteOrder.LITTLE_ENDIAN) None
    else Some(made.getOrElseUpdate((from, to), make(from, to)))

  private val made = TrieMap.empty[(Dtype, Dtype), Conversion]

  private def make(from: Dtype, to: Dtype): Conversion = (from, to) match {
    case (BOOL, BOOL)                  => NormalBooleans
    case (F16, F32)                    => WidenF16
    case (BF16, F32)                   => WidenBF16
    case (byte, F32) if byte.bits == 8 => new WidenBytes(ByteTables(byte))
    case (_, F32)                      => new F32Numbers(Elements(from))
    case (_, F64)                      => new F64Numbers(Elements(from))
    case (_, I64)                      => new I64Numbers(Elements(from))
    case (_, I32)                      => new I32Numbers(Elements(from))
    case (_, I16)                      => new I16Numbers(Elements(from))
    case (_, other)                    => new ByteNumbers(Elements(from), other)
  }
}

private object Views {
  def elements(array: Array[Byte]): ByteBuffer = ByteBuffer.wrap(array).order(ByteOrder.LITTLE_ENDIAN)
  def numbers(array: Array[Byte]): ByteBuffer  = ByteBuffer.wrap(array).order(ByteOrder.nativeOrder)
}

/** The official library accepts any byte as BOOL. In Java, only 0 and 1 are booleans. */
private object NormalBooleans extends Conversion {
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit = {
    var i = 0
    while (i < count) { array(to + i) = if (array(from + i) == 0) 0 else 1; i += 1 }
  }
}

private object WidenF16 extends Conversion {
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit = {
    val in  = Views.elements(array)
    val out = Views.numbers(array)
    var i   = 0
    while (i < count) {
      out.putFloat(to + 4 * i, HalfFloat.f16ToFloat(in.getShort(from + 2 * i) & 0xffff)); i += 1
    }
  }
}

private object WidenBF16 extends Conversion {
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit = {
    val in  = Views.elements(array)
    val out = Views.numbers(array)
    var i   = 0
    while (i < count) {
      out.putFloat(to + 4 * i, HalfFloat.bf16ToFloat(in.getShort(from + 2 * i).toInt)); i += 1
    }
  }
}

/** @param table the value of each of the 256 bytes */
private final class WidenBytes(table: Array[Float]) extends Conversion {
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit = {
    val out = Views.numbers(array)
    var i   = 0
    while (i < count) { out.putFloat(to + 4 * i, table(array(from + i) & 0xff)); i += 1 }
  }
}

private final class F32Numbers(elements: Elements) extends Conversion {
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit = {
    val in  = Views.elements(array)
    val out = Views.numbers(array)
    var i   = 0
    while (i < count) { out.putFloat(to + 4 * i, elements.float(in, from + i * elements.size)); i += 1 }
  }
}

private final class F64Numbers(elements: Elements) extends Conversion {
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit = {
    val in  = Views.elements(array)
    val out = Views.numbers(array)
    var i   = 0
    while (i < count) { out.putDouble(to + 8 * i, elements.double(in, from + i * elements.size)); i += 1 }
  }
}

private final class I64Numbers(elements: Elements) extends Conversion {
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit = {
    val in  = Views.elements(array)
    val out = Views.numbers(array)
    var i   = 0
    while (i < count) { out.putLong(to + 8 * i, elements.long(in, from, i, I64)); i += 1 }
  }
}

private final class I32Numbers(elements: Elements) extends Conversion {
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit = {
    val in  = Views.elements(array)
    val out = Views.numbers(array)
    var i   = 0
    while (i < count) { out.putInt(to + 4 * i, elements.long(in, from, i, I32).toInt); i += 1 }
  }
}

private final class I16Numbers(elements: Elements) extends Conversion {
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit = {
    val in  = Views.elements(array)
    val out = Views.numbers(array)
    var i   = 0
    while (i < count) { out.putShort(to + 2 * i, elements.long(in, from, i, I16).toShort); i += 1 }
  }
}

/** @param target I8 or BOOL */
private final class ByteNumbers(elements: Elements, target: Dtype) extends Conversion {
  def apply(array: Array[Byte], from: Int, to: Int, count: Int): Unit = {
    val in = Views.elements(array)
    var i  = 0
    while (i < count) { array(to + i) = elements.long(in, from, i, target).toByte; i += 1 }
  }
}

package io.github.semyonsinchenko.safetensors.codec

import java.nio.{ByteBuffer, ByteOrder}

import io.github.semyonsinchenko.safetensors.format.Dtype

// One decoder per dtype. They differ in which of the three results is exact.

/** A dtype whose numbers are all doubles. Longs are converted from those. */
private[codec] abstract class ThroughDoubles extends Decoder {

  def longs(bytes: Array[Byte]): Array[Long] = {
    val from = doubles(bytes)
    val held = ThroughDoubles.range.held(from, from.length)
    if (held < from.length) throw new UnencodableValueException(from(held).toString, held, Dtype.I64)
    val to = new Array[Long](from.length)
    var i  = 0
    while (i < to.length) { to(i) = from(i).toLong; i += 1 }
    to
  }
}

private object ThroughDoubles {
  val range = new WholeNumbers(Dtype.I64)
}

/** Decodes to doubles, and rounds these to floats. */
private[codec] abstract class DoubleDecoder extends ThroughDoubles {

  def floats(bytes: Array[Byte]): Array[Float] = {
    val from = doubles(bytes)
    val to   = new Array[Float](from.length)
    var i    = 0
    while (i < to.length) { to(i) = from(i).toFloat; i += 1 }
    to
  }
}

/** Decodes to floats, and widens these to doubles. */
private[codec] abstract class FloatDecoder extends ThroughDoubles {

  def doubles(bytes: Array[Byte]): Array[Double] = {
    val from = floats(bytes)
    val to   = new Array[Double](from.length)
    Widening.floats(from, 0, to, to.length)
    to
  }
}

private object LittleEndian {
  def apply(bytes: Array[Byte]): ByteBuffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
}

/** @param table the value of each of the 256 bytes */
private[codec] final class DecodeByte(table: Array[Float]) extends FloatDecoder {
  def floats(bytes: Array[Byte]): Array[Float] = {
    val to = new Array[Float](bytes.length)
    var i  = 0
    while (i < to.length) { to(i) = table(bytes(i) & 0xff); i += 1 }
    to
  }
}

private[codec] object DecodeI16 extends FloatDecoder {
  def floats(bytes: Array[Byte]): Array[Float] = {
    val from = LittleEndian(bytes)
    val to   = new Array[Float](bytes.length / 2)
    var i    = 0
    while (i < to.length) { to(i) = from.getShort(2 * i).toFloat; i += 1 }
    to
  }
}

private[codec] object DecodeU16 extends FloatDecoder {
  def floats(bytes: Array[Byte]): Array[Float] = {
    val from = LittleEndian(bytes)
    val to   = new Array[Float](bytes.length / 2)
    var i    = 0
    while (i < to.length) { to(i) = (from.getShort(2 * i) & 0xffff).toFloat; i += 1 }
    to
  }
}

private[codec] object DecodeF16 extends FloatDecoder {
  // A table is faster than the arithmetic.
  private lazy val table = Array.tabulate(1 << 16)(HalfFloat.f16ToFloat)

  def floats(bytes: Array[Byte]): Array[Float] = {
    val from   = LittleEndian(bytes)
    val to     = new Array[Float](bytes.length / 2)
    val number = table
    var i      = 0
    while (i < to.length) { to(i) = number(from.getShort(2 * i) & 0xffff); i += 1 }
    to
  }
}

private[codec] object DecodeBF16 extends FloatDecoder {
  def floats(bytes: Array[Byte]): Array[Float] = {
    val from = LittleEndian(bytes)
    val to   = new Array[Float](bytes.length / 2)
    var i    = 0
    while (i < to.length) { to(i) = HalfFloat.bf16ToFloat(from.getShort(2 * i)); i += 1 }
    to
  }
}

private[codec] object DecodeF32 extends FloatDecoder {
  def floats(bytes: Array[Byte]): Array[Float] = {
    val to = new Array[Float](bytes.length / 4)
    LittleEndian(bytes).asFloatBuffer().get(to)
    to
  }
}

private[codec] object DecodeI32 extends DoubleDecoder {
  def doubles(bytes: Array[Byte]): Array[Double] = {
    val from = LittleEndian(bytes)
    val to   = new Array[Double](bytes.length / 4)
    var i    = 0
    while (i < to.length) { to(i) = from.getInt(4 * i).toDouble; i += 1 }
    to
  }
}

private[codec] object DecodeU32 extends DoubleDecoder {
  def doubles(bytes: Array[Byte]): Array[Double] = {
    val from = LittleEndian(bytes)
    val to   = new Array[Double](bytes.length / 4)
    var i    = 0
    while (i < to.length) { to(i) = (from.getInt(4 * i) & 0xffffffffL).toDouble; i += 1 }
    to
  }
}

private[codec] object DecodeF64 extends DoubleDecoder {
  def doubles(bytes: Array[Byte]): Array[Double] = {
    val to = new Array[Double](bytes.length / 8)
    LittleEndian(bytes).asDoubleBuffer().get(to)
    to
  }
}

private[codec] object DecodeI64 extends Decoder {

  def longs(bytes: Array[Byte]): Array[Long] = {
    val to = new Array[Long](bytes.length / 8)
    LittleEndian(bytes).asLongBuffer().get(to)
    to
  }

  def floats(bytes: Array[Byte]): Array[Float] = {
    val from = longs(bytes)
    val to   = new Array[Float](from.length)
    var i    = 0
    while (i < to.length) { to(i) = from(i).toFloat; i += 1 }
    to
  }

  def doubles(bytes: Array[Byte]): Array[Double] = {
    val from = longs(bytes)
    val to   = new Array[Double](from.length)
    Widening.longsToNearest(from, 0, to, to.length)
    to
  }
}

private[codec] object DecodeU64 extends Decoder {

  def longs(bytes: Array[Byte]): Array[Long] = {
    val bits  = DecodeI64.longs(bytes)
    val large = bits.indexWhere(_ < 0)
    if (large >= 0)
      throw new UnencodableValueException(java.lang.Long.toUnsignedString(bits(large)), large, Dtype.I64)
    bits
  }

  def floats(bytes: Array[Byte]): Array[Float] = {
    val from = DecodeI64.longs(bytes)
    val to   = new Array[Float](from.length)
    var i    = 0
    while (i < to.length) {
      to(i) = if (from(i) >= 0) from(i).toFloat else halved(from(i)).toFloat * 2; i += 1
    }
    to
  }

  def doubles(bytes: Array[Byte]): Array[Double] = {
    val from = DecodeI64.longs(bytes)
    val to   = new Array[Double](from.length)
    var i    = 0
    while (i < to.length) {
      to(i) = if (from(i) >= 0) from(i).toDouble else halved(from(i)).toDouble * 2; i += 1
    }
    to
  }

  /** Half of an unsigned number. The last bit is sticky, which keeps a later rounding correct. */
  private def halved(unsigned: Long): Long = (unsigned >>> 1) | (unsigned & 1)
}

package io.github.semyonsinchenko.safetensors.codec

import java.nio.ByteBuffer

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

/** Reads single elements of a dtype from a little-endian buffer. */
private[codec] sealed abstract class Elements(dtype: Dtype) {

  val size: Int = dtype.bits / 8

  def double(in: ByteBuffer, at: Int): Double

  def float(in: ByteBuffer, at: Int): Float = double(in, at).toFloat

  /** @throws UnencodableValueException if the integer dtype `target` cannot hold element `i` of those that begin at `from` */
  final def long(in: ByteBuffer, from: Int, i: Int, target: Dtype): Long = {
    val at    = from + i * size
    val value = whole(in, at)
    if (!isWhole(in, at) || target != I64 && !holds(target, value))
      throw new UnencodableValueException(text(in, at), i, target)
    value
  }

  private def holds(target: Dtype, value: Long): Boolean = target match {
    case I32 => value == value.toInt
    case I16 => value == value.toShort
    case I8  => value == value.toByte
    case _   => value == 0 || value == 1
  }

  protected def whole(in: ByteBuffer, at: Int): Long

  /** Whether a long holds the element. */
  protected def isWhole(in: ByteBuffer, at: Int): Boolean

  protected def text(in: ByteBuffer, at: Int): String
}

private[codec] object Elements {

  def apply(dtype: Dtype): Elements = dtype match {
    case U64  => Unsigned64
    case F64  => new Fractions(dtype, _.getDouble(_))
    case F32  => new Fractions(dtype, _.getFloat(_).toDouble)
    case F16  => new Fractions(dtype, (in, at) => HalfFloat.f16ToFloat(in.getShort(at) & 0xffff).toDouble)
    case BF16 => new Fractions(dtype, (in, at) => HalfFloat.bf16ToFloat(in.getShort(at).toInt).toDouble)
    case I64  => new Integers(dtype, _.getLong(_))
    case I32  => new Integers(dtype, _.getInt(_).toLong)
    case U32  => new Integers(dtype, _.getInt(_) & 0xffffffffL)
    case I16  => new Integers(dtype, _.getShort(_).toLong)
    case U16  => new Integers(dtype, _.getShort(_) & 0xffffL)
    case I8   => new Integers(dtype, _.get(_).toLong)
    case U8 | BOOL => new Integers(dtype, _.get(_) & 0xffL)
    case byte      => ofTable(byte, ByteTables(byte))
  }

  private def ofTable(dtype: Dtype, table: Array[Float]) =
    new Fractions(dtype, (in, at) => table(in.get(at) & 0xff).toDouble)

  private trait ReadDouble { def apply(in: ByteBuffer, at: Int): Double }

  private trait ReadLong { def apply(in: ByteBuffer, at: Int): Long }

  private final class Fractions(dtype: Dtype, read: ReadDouble) extends Elements(dtype) {
    override def double(in: ByteBuffer, at: Int): Double         = read(in, at)
    override protected def whole(in: ByteBuffer, at: Int): Long  = read(in, at).toLong
    override protected def text(in: ByteBuffer, at: Int): String = read(in, at).toString
    // The largest long is no double: the next double is out of range.
    override protected def isWhole(in: ByteBuffer, at: Int): Boolean = {
      val value = read(in, at)
      value == value.toLong.toDouble && value < Long.MaxValue.toDouble
    }
  }

  private final class Integers(dtype: Dtype, read: ReadLong) extends Elements(dtype) {
    override def double(in: ByteBuffer, at: Int): Double             = read(in, at).toDouble
    override def float(in: ByteBuffer, at: Int): Float               = read(in, at).toFloat
    override protected def whole(in: ByteBuffer, at: Int): Long      = read(in, at)
    override protected def text(in: ByteBuffer, at: Int): String     = read(in, at).toString
    override protected def isWhole(in: ByteBuffer, at: Int): Boolean = true
  }

  private object Unsigned64 extends Elements(U64) {
    override def double(in: ByteBuffer, at: Int): Double = {
      val value = in.getLong(at)
      // The last bit is sticky, which keeps the rounding correct.
      if (value >= 0) value.toDouble else ((value >>> 1) | (value & 1)).toDouble * 2
    }
    override def float(in: ByteBuffer, at: Int): Float = {
      val value = in.getLong(at)
      if (value >= 0) value.toFloat else ((value >>> 1) | (value & 1)).toFloat * 2
    }
    override protected def whole(in: ByteBuffer, at: Int): Long      = in.getLong(at)
    override protected def isWhole(in: ByteBuffer, at: Int): Boolean = in.getLong(at) >= 0
    override protected def text(in: ByteBuffer, at: Int): String =
      java.lang.Long.toUnsignedString(in.getLong(at))
  }
}

package io.github.semyonsinchenko.safetensors.codec

import java.lang.Float.floatToRawIntBits
import java.nio.ByteBuffer

import io.github.semyonsinchenko.safetensors.format.Dtype

// The encoders that need no conversion, or that are worth a loop of their own.

private[codec] object BytesToI8 extends Encoder[Array[Byte]] {
  def dtype: Dtype                                       = Dtype.I8
  def encode(values: Array[Byte], out: ByteBuffer): Unit = out.put(values): Unit
}

private[codec] object ShortsToI16 extends Encoder[Array[Short]] {
  def dtype: Dtype = Dtype.I16
  def encode(values: Array[Short], out: ByteBuffer): Unit = {
    out.asShortBuffer().put(values)
    out.position(out.position() + values.length * 2): Unit
  }
}

private[codec] object IntsToI32 extends Encoder[Array[Int]] {
  def dtype: Dtype = Dtype.I32
  def encode(values: Array[Int], out: ByteBuffer): Unit = {
    out.asIntBuffer().put(values)
    out.position(out.position() + values.length * 4): Unit
  }
}

private[codec] object LongsToI64 extends Encoder[Array[Long]] {
  def dtype: Dtype = Dtype.I64
  def encode(values: Array[Long], out: ByteBuffer): Unit = {
    out.asLongBuffer().put(values)
    out.position(out.position() + values.length * 8): Unit
  }
}

private[codec] object LongsToU64 extends Encoder[Array[Long]] {
  def dtype: Dtype = Dtype.U64
  def encode(values: Array[Long], out: ByteBuffer): Unit = {
    val negative = values.indexWhere(_ < 0)
    if (negative >= 0) throw new UnencodableValueException(values(negative).toString, negative, dtype)
    LongsToI64.encode(values, out)
  }
}

private[codec] object FloatsToF32 extends Encoder[Array[Float]] {
  def dtype: Dtype = Dtype.F32
  def encode(values: Array[Float], out: ByteBuffer): Unit = {
    out.asFloatBuffer().put(values)
    out.position(out.position() + values.length * 4): Unit
  }
}

private[codec] object DoublesToF64 extends Encoder[Array[Double]] {
  def dtype: Dtype = Dtype.F64
  def encode(values: Array[Double], out: ByteBuffer): Unit = {
    out.asDoubleBuffer().put(values)
    out.position(out.position() + values.length * 8): Unit
  }
}

/** BF16 is the upper half of a float, so this common case needs only a shift. */
private[codec] final class FloatsToBF16(rounding: Rounding) extends Encoder[Array[Float]] {
  import FloatsToBF16._

  private val nearest = rounding == Rounding.NearestEven

  def dtype: Dtype = Dtype.BF16

  def encode(values: Array[Float], out: ByteBuffer): Unit = {
    val roundUp = if (nearest) -1 else 0
    val special = if (nearest) RoundsToInfinity else Infinity
    val at      = out.position()
    var i       = 0
    while (i < values.length) {
      val bits = floatToRawIntBits(values(i))
      val half =
        if ((bits & Int.MaxValue) < special) (bits + (roundUp & (0x7fff + ((bits >>> 16) & 1)))) >>> 16
        else notFinite(values, i)
      out.putShort(at + 2 * i, half.toShort)
      i += 1
    }
    out.position(at + 2 * values.length): Unit
  }

  /** Infinity or NaN as BF16; a finite number that would become infinite is refused. */
  private def notFinite(values: Array[Float], index: Int): Int = {
    val bits      = floatToRawIntBits(values(index))
    val magnitude = bits & Int.MaxValue
    if (magnitude < Infinity) throw new UnencodableValueException(values(index).toString, index, dtype)
    if (magnitude == Infinity) bits >>> 16 else (bits >>> 16) | QuietBit
  }
}

private object FloatsToBF16 {
  final val Infinity         = 0x7f800000
  final val RoundsToInfinity = 0x7f7f8000
  final val QuietBit         = 0x40
}

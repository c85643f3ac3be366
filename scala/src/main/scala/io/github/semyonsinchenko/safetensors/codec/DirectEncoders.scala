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

/**
 * Floats as F16 or BF16. A normal number needs no more than another exponent and fewer bits; the others, rare but for zero,
 * go the long way.
 */
private[codec] final class FloatsToHalf(val dtype: Dtype, format: HalfFloat, rounding: Rounding)
    extends Encoder[Array[Float]] {
  private val nearest = rounding == Rounding.NearestEven

  def encode(values: Array[Float], out: ByteBuffer): Unit = {
    val halves = new Array[Short](values.length)
    // In variables of its own the loop takes two thirds of the time.
    val shift  = format.floatShift
    val lowest = format.floatLowest
    val range  = format.floatOverflow(nearest) - lowest + Int.MinValue
    val rebias = (if (nearest) (1 << (shift - 1)) - 1 else 0) - format.floatRebias
    val even   = if (nearest) 1 else 0
    var i      = 0
    while (i < values.length) {
      val bits      = floatToRawIntBits(values(i))
      val sign      = (bits >>> 16) & 0x8000
      val magnitude = bits & Int.MaxValue
      halves(i) =
        // As unsigned numbers.
        if (magnitude - lowest + Int.MinValue < range)
          (sign | ((magnitude + rebias + ((magnitude >>> shift) & even)) >>> shift)).toShort
        else if (magnitude == 0) sign.toShort
        else rare(values, i)
      i += 1
    }
    out.asShortBuffer().put(halves)
    out.position(out.position() + 2 * values.length): Unit
  }

  private def rare(values: Array[Float], index: Int): Short = {
    val half = format.round(values(index).toDouble, nearest)
    if (half == HalfFloat.Overflow) throw new UnencodableValueException(values(index).toString, index, dtype)
    half.toShort
  }
}

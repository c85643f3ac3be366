package io.github.semyonsinchenko.safetensors.codec

import java.lang.Float.floatToRawIntBits
import java.nio.{ByteBuffer, ByteOrder}

import io.github.semyonsinchenko.safetensors.format.Dtype

/**
 * Encodes floats as F16 or BF16. For normal numbers it changes the exponent and drops bits. Other numbers, which are rare
 * except for zero, take a slow path. The JVM vectorizes loops from ints to ints without branches, but not loops that read a
 * float's bits or produce shorts. So the arithmetic has its own loop.
 */
private[codec] final class FloatsToHalf(val dtype: Dtype, format: HalfFloat, rounding: Rounding)
    extends Encoder[Array[Float]] {
  import FloatsToHalf._

  private val nearest = rounding == Rounding.NearestEven

  def encode(values: Array[Float], out: ByteBuffer): Unit = {
    val length = math.min(values.length, RunLength)
    val bytes  = ByteBuffer.allocate(4 * length).order(ByteOrder.nativeOrder)
    val bits   = new Array[Int](length)
    val halves = new Array[Short](length)
    val to     = out.asShortBuffer()
    var from   = 0
    while (from < values.length) {
      val n = math.min(length, values.length - from)
      bytes.asFloatBuffer().put(values, from, n)
      bytes.asIntBuffer().get(bits, 0, n)
      shorten(bits, n)
      narrow(bits, n, halves, values, from)
      to.put(halves, 0, n)
      from += n
    }
    out.position(out.position() + 2 * values.length): Unit
  }

  /** Converts the bits of floats to those of halves. A negative result marks a number for the slow path. */
  private def shorten(bits: Array[Int], n: Int): Unit = {
    // Local variables: fields would be read in each iteration.
    val shift  = format.floatShift
    val lowest = format.floatLowest
    val last   = format.floatOverflow(nearest) - 1
    val rebias = (if (nearest) (1 << (shift - 1)) - 1 else 0) - format.floatRebias
    val even   = if (nearest) 1 else 0
    var i      = 0
    while (i < n) {
      val magnitude = bits(i) & Int.MaxValue
      val outside   = ((magnitude - lowest) | (last - magnitude)) & Int.MinValue
      val half      = (magnitude + rebias + ((magnitude >>> shift) & even)) >>> shift
      bits(i) = outside | ((bits(i) >>> 16) & 0x8000) | half
      i += 1
    }
  }

  private def narrow(bits: Array[Int], n: Int, to: Array[Short], values: Array[Float], from: Int): Unit = {
    var i = 0
    while (i < n) {
      to(i) = if (bits(i) >= 0) bits(i).toShort else rare(values, from + i)
      i += 1
    }
  }

  private def rare(values: Array[Float], index: Int): Short =
    if (values(index) == 0) (floatToRawIntBits(values(index)) >>> 16).toShort
    else {
      val half = format.round(values(index).toDouble, nearest)
      if (half == HalfFloat.Overflow)
        throw new UnencodableValueException(values(index).toString, index, dtype)
      half.toShort
    }
}

private object FloatsToHalf {
  // Small enough for the intermediate results to stay in the processor's cache.
  private final val RunLength = 1024
}

package io.github.semyonsinchenko.safetensors.codec

import java.lang.Float.isInfinite
import java.lang.{Double => JDouble}
import java.nio.ByteBuffer

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

/** Writes doubles as one dtype. It writes at an index, which measured faster than advancing the buffer. */
private[codec] abstract class Sink(val dtype: Dtype) extends Serializable {

  /** Writes the first `n` values. Returns the index of the first that the dtype cannot hold, or `n`. */
  def put(values: Array[Double], n: Int, out: ByteBuffer): Int
}

private[codec] object Sink {

  def apply(dtype: Dtype, rounding: Rounding): Sink = dtype match {
    case F64                                          => ToF64
    case F32                                          => ToF32
    case F16                                          => new ToHalf(F16, HalfFloat.F16, rounding)
    case BF16                                         => new ToHalf(BF16, HalfFloat.BF16, rounding)
    case U64                                          => ToU64
    case BOOL | U8 | I8 | U16 | I16 | U32 | I32 | I64 => new ToInteger(dtype)
    case F8_E4M3                                      => new ToFloat8(F8_E4M3, Float8.E4M3)
    case F8_E5M2                                      => new ToFloat8(F8_E5M2, Float8.E5M2)
    case other =>
      throw new IllegalArgumentException(
        s"Numbers cannot be encoded as $other, only as one of ${Encoders.targets.mkString(", ")}.")
  }

  private object ToF64 extends Sink(F64) {
    def put(values: Array[Double], n: Int, out: ByteBuffer): Int = {
      out.asDoubleBuffer().put(values, 0, n)
      out.position(out.position() + n * 8)
      n
    }
  }

  private object ToF32 extends Sink(F32) {
    def put(values: Array[Double], n: Int, out: ByteBuffer): Int = {
      val at = out.position()
      var i  = 0
      while (i < n) {
        val float = values(i).toFloat
        if (isInfinite(float) && !JDouble.isInfinite(values(i))) return i
        out.putFloat(at + 4 * i, float)
        i += 1
      }
      out.position(at + 4 * n)
      n
    }
  }

  private final class ToHalf(dtype: Dtype, format: HalfFloat, rounding: Rounding) extends Sink(dtype) {
    private val nearest = rounding == Rounding.NearestEven

    def put(values: Array[Double], n: Int, out: ByteBuffer): Int = {
      val at = out.position()
      var i  = 0
      while (i < n) {
        val bits = format.round(values(i), nearest)
        if (bits == HalfFloat.Overflow) return i
        out.putShort(at + 2 * i, bits.toShort)
        i += 1
      }
      out.position(at + 2 * n)
      n
    }
  }

  private final class ToFloat8(dtype: Dtype, format: Float8) extends Sink(dtype) {
    def put(values: Array[Double], n: Int, out: ByteBuffer): Int = {
      val at = out.position()
      var i  = 0
      while (i < n) {
        out.put(at + i, format.round(values(i)))
        i += 1
      }
      out.position(at + n)
      n
    }
  }

  /** Integer dtypes whose values all fit a long. */
  private final class ToInteger(dtype: Dtype) extends Sink(dtype) {
    private val range = new WholeNumbers(dtype)

    def put(values: Array[Double], n: Int, out: ByteBuffer): Int = {
      val held = range.held(values, n)
      val at   = out.position()
      var i    = 0
      dtype.bits match {
        case 8  => while (i < held) { out.put(at + i, values(i).toInt.toByte); i += 1 }
        case 16 => while (i < held) { out.putShort(at + 2 * i, values(i).toInt.toShort); i += 1 }
        case 32 => while (i < held) { out.putInt(at + 4 * i, values(i).toLong.toInt); i += 1 }
        case 64 => while (i < held) { out.putLong(at + 8 * i, values(i).toLong); i += 1 }
      }
      out.position(at + held * dtype.bits / 8)
      held
    }
  }

  private object ToU64 extends Sink(U64) {
    private val range = new WholeNumbers(U64)

    def put(values: Array[Double], n: Int, out: ByteBuffer): Int = {
      val held = range.held(values, n)
      var i    = 0
      while (i < held) {
        val value = values(i)
        out.putLong(if (value < TwoTo63) value.toLong else (value - TwoTo63).toLong + Long.MinValue)
        i += 1
      }
      held
    }

    private final val TwoTo63 = 9223372036854775808.0
  }
}

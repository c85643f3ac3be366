package io.github.semyonsinchenko.safetensors.functions

import java.math.{BigDecimal, MathContext}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.codec.Decoders
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

/** Evaluates `st_show` for a row, for interpreted and generated code. */
final class TensorToText extends Serializable {
  import TensorToText._

  private val argument = new TensorArgument(FunctionName, Dtype.all)

  /** The dtype, the shape and the first values of a Tensor Struct. The struct is not null. */
  def apply(tensor: InternalRow, values: Int): UTF8String = {
    Arguments.values(values).left.foreach(message => throw argument.error(message))
    val dtype = argument.dtype(tensor)
    val shape = argument.shape(tensor)
    val bytes = argument.data(tensor, dtype, shape)
    val first = new Array[Byte](math.min(values * size(dtype), bytes.remaining).toInt)
    bytes.get(first)
    val rest = if (bytes.hasRemaining) Seq("...") else Nil
    UTF8String.fromString((s"$dtype${Arguments.text(shape)}" +: (show(dtype, first) ++ rest)).mkString(" "))
  }
}

private[functions] object TensorToText {

  val FunctionName = "st_show"

  private val digits = new MathContext(6)

  /** The bytes of what is shown as one value: an element, or a byte that several elements share. */
  private def size(dtype: Dtype): Long = math.max(dtype.bits / 8, 1).toLong

  private def show(dtype: Dtype, bytes: Array[Byte]): Seq[String] = dtype match {
    case F4 | F6_E2M3 | F6_E3M2                => bytes.toSeq.map(byte => f"0x$byte%02x")
    case BOOL                                  => bytes.toSeq.map(byte => (byte != 0).toString)
    case U64                                   => longs(I64, bytes).map(java.lang.Long.toUnsignedString(_))
    case U8 | I8 | U16 | I16 | U32 | I32 | I64 => longs(dtype, bytes).map(_.toString)
    case C64 => doubles(F32, bytes).map(number).grouped(2).map { parts =>
        if (parts(1).startsWith("-")) s"${parts(0)}${parts(1)}i" else s"${parts(0)}+${parts(1)}i"
      }.toSeq
    case _ => doubles(dtype, bytes).map(number)
  }

  private def longs(dtype: Dtype, bytes: Array[Byte]): Seq[Long] = Decoders.of(dtype).get.longs(bytes).toSeq

  private def doubles(dtype: Dtype, bytes: Array[Byte]): Seq[Double] =
    Decoders.of(dtype).get.doubles(bytes).toSeq

  /** A float in at most six digits, with an exponent beyond them. */
  private def number(value: Double): String =
    if (value.isNaN || value.isInfinite) value.toString
    else {
      val rounded  = new BigDecimal(value).round(digits).stripTrailingZeros
      val exponent = rounded.precision - rounded.scale - 1
      if (exponent >= 0 && exponent < digits.getPrecision) rounded.toPlainString else rounded.toString
    }
}

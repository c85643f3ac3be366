package io.github.semyonsinchenko.safetensors.codec

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

/** The ranges of the dtypes that numbers are encoded as. */
private[codec] object Limits {

  val signed: Vector[Dtype]   = Vector(I8, I16, I32, I64)
  val unsigned: Vector[Dtype] = Vector(U8, U16, U32, U64)

  /** The smallest and the largest number of an integer dtype. */
  def integers(dtype: Dtype): (BigInt, BigInt) =
    if (dtype == BOOL) (BigInt(0), BigInt(1))
    else if (signed.contains(dtype)) (-BigInt(2).pow(dtype.bits - 1), BigInt(2).pow(dtype.bits - 1) - 1)
    else (BigInt(0), BigInt(2).pow(dtype.bits) - 1)

  def text(dtype: Dtype): String = dtype match {
    case F16  => "finite values up to 65504 either way"
    case BF16 => "finite values up to 3.3895314E38 either way"
    case F32  => s"finite values up to ${Float.MaxValue} either way"
    case F64  => s"finite values up to ${Double.MaxValue} either way"
    case _ =>
      val (min, max) = integers(dtype)
      s"whole numbers from $min to $max"
  }
}

package io.github.semyonsinchenko.safetensors.codec

/** What becomes of the bits of a number that F16 or BF16 has no room for. */
sealed abstract class Rounding(val name: String) extends Product with Serializable

object Rounding {

  /** Cut off: fast, and up to one unit in the last place away from what NumPy and PyTorch give. */
  case object Truncate extends Rounding("truncate")

  /** To the nearest, ties to even: what NumPy and PyTorch do. */
  case object NearestEven extends Rounding("nearest_even")

  val all: Vector[Rounding] = Vector(Truncate, NearestEven)

  def of(name: String): Option[Rounding] = all.find(_.name == name)
}

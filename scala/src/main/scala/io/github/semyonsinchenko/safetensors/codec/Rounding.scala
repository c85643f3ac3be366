package io.github.semyonsinchenko.safetensors.codec

/** How to drop the bits of a number that do not fit F16 or BF16. */
sealed abstract class Rounding(val name: String) extends Product with Serializable

object Rounding {

  /** Truncates. Fast, and up to one unit in the last place away from NumPy and PyTorch. */
  case object Truncate extends Rounding("truncate")

  /** Rounds to nearest, ties to even, as NumPy and PyTorch do. */
  case object NearestEven extends Rounding("nearest_even")

  val all: Vector[Rounding] = Vector(Truncate, NearestEven)

  def of(name: String): Option[Rounding] = all.find(_.name == name)
}

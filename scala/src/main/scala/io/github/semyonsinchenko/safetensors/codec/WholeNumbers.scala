package io.github.semyonsinchenko.safetensors.codec

import io.github.semyonsinchenko.safetensors.format.Dtype

/** The doubles that an integer dtype holds once their fraction is gone. NaN is not among them. */
private[codec] final class WholeNumbers(dtype: Dtype) extends Serializable {
  private val (min, max) = Limits.integers(dtype)
  // The first doubles outside: `min - 1` may round to `min` itself.
  private val below = math.min((min - 1).toDouble, Math.nextDown(min.toDouble))
  private val above = (max + 1).toDouble

  /** How many of the first `n` values come before one that does not fit. */
  def held(values: Array[Double], n: Int): Int = {
    var i = 0
    while (i < n && below < values(i) && values(i) < above) i += 1
    i
  }
}

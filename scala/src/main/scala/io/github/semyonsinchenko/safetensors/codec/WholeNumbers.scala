package io.github.semyonsinchenko.safetensors.codec

import io.github.semyonsinchenko.safetensors.format.Dtype

/** The doubles that fit an integer dtype after truncation. NaN does not fit. */
private[codec] final class WholeNumbers(dtype: Dtype) extends Serializable {
  private val (min, max) = Limits.integers(dtype)
  // The first doubles out of range: `min - 1` may round to `min`.
  private val below = math.min((min - 1).toDouble, Math.nextDown(min.toDouble))
  private val above = (max + 1).toDouble

  /** The index of the first of `n` values that does not fit, or `n`. */
  def held(values: Array[Double], n: Int): Int = {
    var i = 0
    while (i < n && below < values(i) && values(i) < above) i += 1
    i
  }
}

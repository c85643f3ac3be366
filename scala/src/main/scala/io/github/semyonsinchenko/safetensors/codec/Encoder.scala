package io.github.semyonsinchenko.safetensors.codec

import java.nio.ByteBuffer

import io.github.semyonsinchenko.safetensors.format.Dtype

/**
 * Encodes arrays of one primitive type as one dtype. Chosen once per column.
 *
 * A value that the dtype cannot hold is an error and never wraps. A float loses its fraction when it becomes an integer.
 * Float dtypes keep infinities and NaN. F8 dtypes take every number, as [[Float8]] says. `rounding` applies to F16 and BF16 only;
 * other dtypes round to nearest.
 *
 * @tparam A the type of the array
 */
abstract class Encoder[A] extends Serializable {

  def dtype: Dtype

  /**
   * Writes all values at the position of `out` and advances it. `out` must be little-endian and have enough room.
   *
   * @throws UnencodableValueException for the first value that the dtype cannot hold. Values before it may have been written.
   */
  def encode(values: A, out: ByteBuffer): Unit
}

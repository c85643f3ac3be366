package io.github.semyonsinchenko.safetensors.codec

import java.nio.ByteBuffer

import io.github.semyonsinchenko.safetensors.format.Dtype

/**
 * Encodes arrays of one primitive type as one dtype; chosen once per column.
 *
 * A value that the dtype cannot hold is an error, never a wrap. A float gives up its fraction going to an integer.
 * Infinities and NaN stay so between floats. `rounding` matters to F16 and BF16 alone: elsewhere numbers round to
 * the nearest.
 *
 * @tparam A the type of the array
 */
abstract class Encoder[A] extends Serializable {

  def dtype: Dtype

  /**
   * Writes all values at the position of `out`, which is little-endian and has room for them, and advances it.
   *
   * @throws UnencodableValueException for the first value that the dtype cannot hold; some of those before it may
   *                                   have been written
   */
  def encode(values: A, out: ByteBuffer): Unit
}

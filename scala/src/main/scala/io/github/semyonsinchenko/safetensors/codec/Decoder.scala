package io.github.semyonsinchenko.safetensors.codec

/** Decodes the little-endian bytes of one dtype. The length must be a multiple of the element size. */
abstract class Decoder extends Serializable {

  /** The numbers as floats, rounded to nearest. Numbers out of range become infinite. */
  def floats(bytes: Array[Byte]): Array[Float]

  /** The numbers as doubles. Exact, except that integers beyond 2^53 are rounded to nearest. */
  def doubles(bytes: Array[Byte]): Array[Double]

  /**
   * The numbers as longs, without their fractions.
   *
   * @throws UnencodableValueException for NaN and for numbers out of range
   */
  def longs(bytes: Array[Byte]): Array[Long]
}

package io.github.semyonsinchenko.safetensors.codec

/** Decodes the little-endian bytes of one dtype. The bytes are whole elements. */
abstract class Decoder extends Serializable {

  /** The numbers as floats: those that no float holds rounded to the nearest, large ones to infinity. */
  def floats(bytes: Array[Byte]): Array[Float]

  /** The numbers as doubles: exact but for integers past 2^53, which round to the nearest. */
  def doubles(bytes: Array[Byte]): Array[Double]

  /**
   * The numbers as longs; fractions are given up.
   *
   * @throws UnencodableValueException for a number that no long holds: NaN, or out of range
   */
  def longs(bytes: Array[Byte]): Array[Long]
}

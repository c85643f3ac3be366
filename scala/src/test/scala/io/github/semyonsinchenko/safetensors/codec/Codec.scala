package io.github.semyonsinchenko.safetensors.codec

import java.nio.{ByteBuffer, ByteOrder}

import io.github.semyonsinchenko.safetensors.format.Dtype

/** What the tests call the codec by. */
object Codec {
  import Rounding.Truncate

  def bytes(dtype: Dtype, values: Byte*): Array[Byte] =
    encode(Encoders.bytes(dtype, Truncate), values.toArray)
  def shorts(dtype: Dtype, values: Short*): Array[Byte] =
    encode(Encoders.shorts(dtype, Truncate), values.toArray)
  def ints(dtype: Dtype, values: Int*): Array[Byte] = encode(Encoders.ints(dtype, Truncate), values.toArray)
  def longs(dtype: Dtype, values: Long*): Array[Byte] =
    encode(Encoders.longs(dtype, Truncate), values.toArray)
  def floats(dtype: Dtype, values: Float*): Array[Byte] =
    encode(Encoders.floats(dtype, Truncate), values.toArray)
  def doubles(dtype: Dtype, values: Double*): Array[Byte] =
    encode(Encoders.doubles(dtype, Truncate), values.toArray)

  def encode[A](encoder: Encoder[A], values: A): Array[Byte] = {
    val length = java.lang.reflect.Array.getLength(values)
    val out    = ByteBuffer.allocate(length * encoder.dtype.bits / 8).order(ByteOrder.LITTLE_ENDIAN)
    encoder.encode(values, out)
    assert(!out.hasRemaining)
    out.array
  }

  def decoder(dtype: Dtype): Decoder = Decoders.of(dtype).get

  /** The one 16-bit element as an unsigned number. */
  def bits(bytes: Array[Byte]): Int = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getShort & 0xffff

  def le16(bits: Int): Array[Byte] = Array(bits.toByte, (bits >>> 8).toByte)
}

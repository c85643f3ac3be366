package io.github.semyonsinchenko.safetensors.codec

import java.nio.ByteBuffer

import io.github.semyonsinchenko.safetensors.format.Dtype

/**
 * Widens the values to doubles, which is exact except for large longs, and encodes the doubles. Works in chunks that fit the
 * processor's cache.
 */
private[codec] final class ThroughDouble[A](widen: Widening[A], sink: Sink) extends Encoder[A] {

  def dtype: Dtype = sink.dtype

  def encode(values: A, out: ByteBuffer): Unit = {
    val length = java.lang.reflect.Array.getLength(values)
    val run    = new Array[Double](math.min(length, ThroughDouble.RunLength))
    var from   = 0
    while (from < length) {
      val n = math.min(run.length, length - from)
      widen(values, from, run, n)
      val refused = sink.put(run, n, out)
      if (refused < n) throw unencodable(values, from + refused)
      from += n
    }
  }

  private def unencodable(values: A, index: Int): UnencodableValueException =
    new UnencodableValueException(java.lang.reflect.Array.get(values, index).toString, index, dtype)
}

private object ThroughDouble {
  private final val RunLength = 1024
}

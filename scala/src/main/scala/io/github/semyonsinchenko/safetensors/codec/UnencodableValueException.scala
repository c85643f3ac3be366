package io.github.semyonsinchenko.safetensors.codec

import io.github.semyonsinchenko.safetensors.format.Dtype

/**
 * A value that a dtype cannot hold.
 *
 * @param value the value as text
 * @param index its place in the array that was being encoded or decoded, from 0
 * @param dtype the dtype that has no room for it
 */
final class UnencodableValueException(val value: String, val index: Int, val dtype: Dtype)
    extends IllegalArgumentException(
      s"$dtype cannot hold $value, the element at index $index: it holds ${Limits.text(dtype)}") {

  // Tells of the data, not of the code, and may be caught and put in other words for every row.
  override def fillInStackTrace(): Throwable = this
}

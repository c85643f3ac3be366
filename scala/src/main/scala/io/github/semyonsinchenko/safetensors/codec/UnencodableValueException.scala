package io.github.semyonsinchenko.safetensors.codec

import io.github.semyonsinchenko.safetensors.format.Dtype

/**
 * A value that a dtype cannot hold.
 *
 * @param value the value as text
 * @param index its index in the array
 * @param dtype the dtype that cannot hold it
 */
final class UnencodableValueException(val value: String, val index: Int, val dtype: Dtype)
    extends IllegalArgumentException(
      s"$dtype cannot hold $value, the element at index $index: it holds ${Limits.text(dtype)}") {

  // An error in the data, not in the code. Callers may catch one per row.
  override def fillInStackTrace(): Throwable = this
}

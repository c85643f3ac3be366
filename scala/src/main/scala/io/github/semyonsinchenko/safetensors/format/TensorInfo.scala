package io.github.semyonsinchenko.safetensors.format

/**
 * One tensor's entry in a header.
 *
 * @param shape dimensions, as unsigned 64-bit numbers; empty for a scalar
 * @param begin where its bytes begin in the byte buffer
 * @param end   where they end, exclusive
 */
final case class TensorInfo(name: String, dtype: Dtype, shape: IndexedSeq[Long], begin: Long, end: Long) {

  /** Length in bytes. */
  def size: Long = end - begin
}

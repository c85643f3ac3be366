package io.github.semyonsinchenko.safetensors.format

/**
 * A tensor's entry in a header.
 *
 * @param shape dimensions, as unsigned 64-bit numbers; empty for a scalar
 * @param begin its first byte in the byte buffer
 * @param end   the byte after its last
 */
final case class TensorInfo(name: String, dtype: Dtype, shape: IndexedSeq[Long], begin: Long, end: Long) {

  /** Length in bytes. */
  def size: Long = end - begin
}

package io.github.semyonsinchenko.safetensors.format

/** A part of a file: `count` bytes from `position` on. */
final case class ByteRange(position: Long, count: Int)

/** A part of a file, and where it belongs: in `target` from `offset` on. */
final case class ByteCopy(position: Long, count: Int, target: Array[Byte], offset: Int)

/** The bytes of one file, by position. Whoever opens it says where the file is; this layer opens none. */
trait ByteSource extends AutoCloseable {

  /** What errors call the file: its path. */
  def name: String

  /** The file's length in bytes. */
  def length: Long

  /**
   * Copies `count` bytes from `position` of the file to `target` from `offset` on. If the file ends before, or has changed since
   * it was opened, that is an error which names it.
   */
  def read(position: Long, target: Array[Byte], offset: Int, count: Int): Unit

  /** A new array with `count` bytes from `position` of the file. */
  final def bytes(position: Long, count: Int): Array[Byte] = {
    val target = new Array[Byte](count)
    read(position, target, 0, count)
    target
  }

  /** Makes all the copies. Where files are far away, one call costs less than many reads. */
  def readAll(copies: IndexedSeq[ByteCopy]): Unit =
    copies.foreach(copy => read(copy.position, copy.target, copy.offset, copy.count))

  /**
   * How many bytes callers do well to ask for in one `readAll`, though they need them one after the other. None where a request
   * costs nothing.
   */
  def batchBytes: Int = 0
}

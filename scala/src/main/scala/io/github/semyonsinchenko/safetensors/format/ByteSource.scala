package io.github.semyonsinchenko.safetensors.format

/** A part of a file: `count` bytes, starting at `position`. */
final case class ByteRange(position: Long, count: Int)

/** A part of a file, and where to copy it: to `target`, starting at `offset`. */
final case class ByteCopy(position: Long, count: Int, target: Array[Byte], offset: Int)

/** The bytes of one file, by position. This layer does not open files: the caller does. */
trait ByteSource extends AutoCloseable {

  /** The path of the file, for error messages. */
  def name: String

  /** The file's length in bytes. */
  def length: Long

  /**
   * Copies `count` bytes at `position` of the file to `target` at `offset`. Throws an error that names the file if it is too
   * short or has changed since it was opened.
   */
  def read(position: Long, target: Array[Byte], offset: Int, count: Int): Unit

  /** Reads `count` bytes at `position` of the file into a new array. */
  final def bytes(position: Long, count: Int): Array[Byte] = {
    val target = new Array[Byte](count)
    read(position, target, 0, count)
    target
  }

  /** Makes all copies. For remote files, one call is cheaper than many reads. */
  def readAll(copies: IndexedSeq[ByteCopy]): Unit =
    copies.foreach(copy => read(copy.position, copy.target, copy.offset, copy.count))

  /**
   * The number of bytes to request in one `readAll`, for callers that need them one after the other. None if a request is
   * free.
   */
  def batchBytes: Int = 0
}

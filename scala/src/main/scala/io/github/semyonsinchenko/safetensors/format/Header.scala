package io.github.semyonsinchenko.safetensors.format

import java.nio.{ByteBuffer, ByteOrder, CharBuffer}
import java.nio.charset.{CodingErrorAction, StandardCharsets}
import java.util

/**
 * A valid header: tensors in offset order, without holes or overlaps, filling the file.
 *
 * @param metadata  the entries of `__metadata__`, empty if it is absent
 * @param tensors   in offset order
 * @param dataStart where the byte buffer begins in the file
 */
final class Header private (
    val metadata: Map[String, String],
    val tensors: IndexedSeq[TensorInfo],
    val dataStart: Long) {

  // Java's map compares names with equal hashes. Scala's takes quadratic time for names made to collide.
  private lazy val byName: util.Map[String, TensorInfo] = {
    val map = new util.HashMap[String, TensorInfo]
    tensors.foreach(tensor => map.put(tensor.name, tensor))
    map
  }

  def tensor(name: String): Option[TensorInfo] = Option(byName.get(name))
}

object Header {

  /** The longest header that readers accept: `MAX_HEADER_SIZE` of the official library. */
  val MaxSize = 100000000

  /** The header entry that is a map of strings instead of a tensor. */
  val MetadataName: String = HeaderParser.MetadataName

  /** The number of bytes before the header, which contain its length. */
  val Prefix = 8

  /** The size of the first read, before the header's length is known. It covers most headers, and small files completely. */
  val FirstRead: Int = 64 * 1024

  /**
   * Reads and checks a file's header, in at most two requests. The first may include the beginning of the byte buffer.
   *
   * @throws InvalidFileException if the official library refuses the file, or if a name is repeated and `names` forbids it
   */
  def read(source: ByteSource, names: RepeatedNames = RepeatedNames.LastCounts): Header = {
    def refuse(refusal: Refusal, detail: String) =
      throw new InvalidFileException(source.name, refusal, detail)
    if (source.length < Prefix)
      refuse(Refusal.HeaderTooSmall, s"it has ${source.length} bytes, expected 8 or more")
    val first = source.bytes(0, math.min(source.length, FirstRead).toInt)
    val size  = ByteBuffer.wrap(first).order(ByteOrder.LITTLE_ENDIAN).getLong(0)
    if (size < 0 || size > MaxSize)
      refuse(Refusal.HeaderTooLarge,
        s"its header has ${java.lang.Long.toUnsignedString(size)} bytes, at most $MaxSize are allowed")
    if (Prefix + size > source.length)
      refuse(Refusal.InvalidHeaderLength,
        s"its header ends at byte ${Prefix + size}, but it has ${source.length} bytes")
    val end   = Prefix + size.toInt
    val bytes = if (end <= first.length) first else rest(source, first, end)
    if (!isUtf8(bytes, end)) refuse(Refusal.InvalidHeader, "its header is not UTF-8")
    val parsed =
      try HeaderParser.parse(bytes, Prefix, end)
      catch { case e: MalformedJson => refuse(Refusal.InvalidHeaderDeserialization, e.getMessage) }
    if (names == RepeatedNames.Refused) parsed.repeated.foreach(name =>
      refuse(Refusal.RepeatedName, s"its header has $name twice"))
    new Header(parsed.metadata, HeaderCheck.inOrder(parsed, end, source), end.toLong)
  }

  private def rest(source: ByteSource, first: Array[Byte], end: Int): Array[Byte] = {
    val bytes = util.Arrays.copyOf(first, end)
    source.read(first.length, bytes, first.length, end - first.length)
    bytes
  }

  /** Strict: no overlong forms and no encoded surrogates. Decodes in pieces, because a header may have 100 MB. */
  private def isUtf8(bytes: Array[Byte], end: Int): Boolean = {
    val decoder = StandardCharsets.UTF_8.newDecoder().onMalformedInput(CodingErrorAction.REPORT)
    val in      = ByteBuffer.wrap(bytes, Prefix, end - Prefix)
    val scratch = CharBuffer.allocate(8192)
    var result  = decoder.decode(in, scratch.clear(), true)
    while (result.isOverflow) result = decoder.decode(in, scratch.clear(), true)
    !result.isError
  }
}

package io.github.semyonsinchenko.safetensors.format

import java.io.ByteArrayOutputStream
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8

/**
 * Headers as the official library writes them: compact JSON, `__metadata__` first, non-ASCII raw, padded with
 * spaces so that the byte buffer begins at a multiple of 8. Metadata keys are sorted, where the library's order is
 * random: the same tensors give the same bytes.
 */
object HeaderWriter {

  /**
   * The order of tensors in a file: dtypes from the widest to the narrowest, then names as UTF-8 bytes. It keeps every
   * tensor aligned without holes, which readers refuse.
   */
  val order: Ordering[(Dtype, String)] = { (left, right) =>
    if (left._1 != right._1) right._1.rank.compare(left._1.rank)
    else Utf8Order.compare(left._2, right._2)
  }

  /**
   * The length prefix and the header.
   *
   * @param tensors in the order of their bytes
   */
  def bytes(metadata: Map[String, String], tensors: Iterable[TensorInfo]): Array[Byte] = {
    val out = new ByteArrayOutputStream(256)
    out.write(new Array[Byte](Header.Prefix))
    out.write('{')
    val separator = new Separator(out)
    if (metadata.nonEmpty) { separator.next(); writeMetadata(metadata, out) }
    tensors.foreach { tensor => separator.next(); writeTensor(tensor, out) }
    out.write('}')
    while (out.size % 8 != 0) out.write(' ')
    val bytes = out.toByteArray
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).putLong(0, bytes.length.toLong - Header.Prefix)
    bytes
  }

  private def writeMetadata(metadata: Map[String, String], out: ByteArrayOutputStream): Unit = {
    writeString(Header.MetadataName, out)
    write(":{", out)
    val separator = new Separator(out)
    metadata.toSeq.sortBy(_._1).foreach { case (key, value) =>
      separator.next()
      writeString(key, out)
      out.write(':')
      writeString(value, out)
    }
    out.write('}')
  }

  private def writeTensor(tensor: TensorInfo, out: ByteArrayOutputStream): Unit = {
    writeString(tensor.name, out)
    write(s""":{"dtype":"${tensor.dtype.name}","shape":${tensor.shape.mkString("[", ",", "]")},""", out)
    write(s""""data_offsets":[${tensor.begin},${tensor.end}]}""", out)
  }

  private def writeString(text: String, out: ByteArrayOutputStream): Unit = {
    out.write('"')
    text.getBytes(UTF_8).foreach(writeEscaped(_, out))
    out.write('"')
  }

  private def writeEscaped(byte: Byte, out: ByteArrayOutputStream): Unit = byte match {
    case '"'                          => write("\\\"", out)
    case '\\'                         => write("\\\\", out)
    case '\b'                         => write("\\b", out)
    case '\f'                         => write("\\f", out)
    case '\n'                         => write("\\n", out)
    case '\r'                         => write("\\r", out)
    case '\t'                         => write("\\t", out)
    case _ if byte >= 0 && byte < ' ' => write(f"\\u$byte%04x", out)
    case _                            => out.write(byte.toInt)
  }

  private def write(text: String, out: ByteArrayOutputStream): Unit = out.write(text.getBytes(UTF_8))

  private final class Separator(out: ByteArrayOutputStream) {
    private var first = true
    def next(): Unit  = if (first) first = false else out.write(',')
  }
}

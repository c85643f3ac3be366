package io.github.semyonsinchenko.safetensors.format

import java.io.ByteArrayOutputStream
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8

/**
 * Writes headers as the official library does: compact JSON, `__metadata__` first, non-ASCII characters unescaped, padded
 * with spaces so that the byte buffer begins at a multiple of 8. Unlike the library, whose order is random, it sorts the
 * metadata keys: the same tensors give the same bytes.
 */
object HeaderWriter {

  /**
   * The order of tensors in a file: by dtype from the widest to the narrowest, then by name as UTF-8 bytes. It aligns every
   * tensor without holes, which readers refuse.
   */
  val order: Ordering[(Dtype, String)] = { (left, right) =>
    if (left._1 != right._1) right._1.rank.compare(left._1.rank)
    else Utf8Order.compare(left._2, right._2)
  }

  /**
   * The length prefix and the header.
   *
   * @param tensors in offset order
   */
  def bytes(metadata: Map[String, String], tensors: Iterable[TensorInfo]): Array[Byte] = {
    val out = new ByteArrayOutputStream(256)
    out.write(new Array[Byte](Header.Prefix))
    // One member at a time: a header may have hundreds of thousands.
    val json = new StringBuilder("{")
    def flush(): Unit = {
      out.write(json.toString.getBytes(UTF_8))
      json.setLength(0)
    }
    if (metadata.nonEmpty) appendMetadata(metadata, json)
    var first = metadata.isEmpty
    tensors.foreach { tensor =>
      if (!first) json.append(',')
      first = false
      appendTensor(tensor, json)
      flush()
    }
    json.append('}')
    flush()
    while (out.size % 8 != 0) out.write(' ')
    val bytes = out.toByteArray
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).putLong(0, bytes.length.toLong - Header.Prefix)
    bytes
  }

  /** The length of a name in a header, without quotes. */
  def length(name: String): Int = {
    var length = 0
    var i      = 0
    while (i < name.length) {
      val char = name.charAt(i)
      length += (
        if (mustEscape(char)) escaped(char).length
        else if (char < 0x80) 1
        else if (char < 0x800 || Character.isSurrogate(char)) 2 // a surrogate pair is four bytes
        else 3
      )
      i += 1
    }
    length
  }

  private def appendMetadata(metadata: Map[String, String], json: StringBuilder): Unit = {
    appendString(Header.MetadataName, json)
    json.append(':')
    appendStrings(metadata, json)
  }

  /** A JSON object of strings, as headers have them: sorted by name as UTF-8 bytes, and without spaces. */
  def jsonOf(strings: Map[String, String]): String = {
    val json = new StringBuilder
    appendStrings(strings, json)
    json.toString
  }

  private def appendStrings(strings: Map[String, String], json: StringBuilder): Unit = {
    var separator = "{"
    strings.toSeq.sortBy(_._1)(Utf8Order).foreach { case (key, value) =>
      json.append(separator)
      separator = ","
      appendString(key, json)
      json.append(':')
      appendString(value, json)
    }
    json.append('}')
    ()
  }

  private def appendTensor(tensor: TensorInfo, json: StringBuilder): Unit = {
    appendString(tensor.name, json)
    json.append(":{\"dtype\":\"").append(tensor.dtype.name).append("\",\"shape\":")
    tensor.shape.addString(json, "[", ",", "]")
    json.append(",\"data_offsets\":[").append(tensor.begin).append(',').append(tensor.end).append("]}")
    ()
  }

  private def appendString(text: String, json: StringBuilder): Unit = {
    json.append('"')
    var i = 0
    while (i < text.length) {
      val char = text.charAt(i)
      if (mustEscape(char)) json.append(escaped(char)) else json.append(char)
      i += 1
    }
    json.append('"')
    ()
  }

  private def mustEscape(char: Char): Boolean = char < ' ' || char == '"' || char == '\\'

  private def escaped(char: Char): String = char match {
    case '"'  => "\\\""
    case '\\' => "\\\\"
    case '\b' => "\\b"
    case '\f' => "\\f"
    case '\n' => "\\n"
    case '\r' => "\\r"
    case '\t' => "\\t"
    case _    => f"\\u${char.toInt}%04x"
  }
}

package io.github.semyonsinchenko.safetensors.write.encode

import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._

import io.github.semyonsinchenko.safetensors.format.Header

/** Reads the key of a row: a string, or an integer as text. */
private[write] final class KeyReader(ordinal: Int, dataType: DataType) {

  private val text: InternalRow => String = dataType match {
    case _: StringType => row => decoded(row.getUTF8String(ordinal).getBytes)
    case other         => row => row.get(ordinal, other).toString
  }

  /** @throws InvalidCellException for a null, or for a key that no tensor can have */
  def of(row: InternalRow): String = {
    if (row.isNullAt(ordinal))
      throw new InvalidCellException("null, and every tensor needs a key. Fill it, or filter the row out")
    val key = text(row)
    if (key == Header.MetadataName) throw new InvalidCellException(
      s"`$key`, a name that the format keeps for itself: no reader would find the tensor. Name it otherwise")
    key
  }

  // A Spark string may hold any bytes, but a header is UTF-8. Decoding replaces invalid bytes by U+FFFD.
  private def decoded(bytes: Array[Byte]): String = {
    val key = new String(bytes, UTF_8)
    if (key.indexOf('\ufffd') >= 0) checkUtf8(bytes)
    key
  }

  private def checkUtf8(bytes: Array[Byte]): Unit =
    try { UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)); () }
    catch {
      case _: CharacterCodingException =>
        throw new InvalidCellException(
          s"a key that is not UTF-8: ${bytes.map(b => f"$b%02x").mkString}. Encode it otherwise")
    }
}

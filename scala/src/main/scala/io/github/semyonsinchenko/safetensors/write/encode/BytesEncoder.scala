package io.github.semyonsinchenko.safetensors.write.encode

import java.nio.ByteBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.RowBytes
import io.github.semyonsinchenko.safetensors.write.memory.Payload

/** Encodes strings and binary values as vectors of bytes. */
private[write] final class BytesEncoder(bytes: (InternalRow, Int) => ByteBuffer) extends CellEncoder {

  override def encode(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample = {
    val value = bytes(row, ordinal)
    val count = value.remaining
    payloadOf(Dtype.U8).append(value)
    Sample(Dtype.U8, Seq(count))
  }
}

private[encode] object BytesEncoder {

  val binary: CellEncoder = new BytesEncoder(RowBytes.of)

  val text: CellEncoder = new BytesEncoder(utf8)

  // A Spark string may hold any bytes.
  private def utf8(row: InternalRow, ordinal: Int): ByteBuffer = {
    val string = row.getUTF8String(ordinal)
    checkUtf8(string)
    string.getByteBuffer
  }

  /** @throws InvalidCellException if a string has other bytes */
  def checkUtf8(string: UTF8String): Unit = if (!string.isValid) throw new InvalidCellException(
    s"`${string.toValidString.take(MaxShown)}`, a string whose bytes are not valid UTF-8 (shown as \ufffd). Repair it with " +
      "`make_valid_utf8`, or cast the column to binary")

  private val MaxShown = 80
}

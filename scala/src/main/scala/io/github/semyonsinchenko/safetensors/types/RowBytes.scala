package io.github.semyonsinchenko.safetensors.types

import java.nio.ByteBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

object RowBytes {

  /** The bytes of a binary field. If they are in the memory of a row, they are not copied. */
  def of(row: InternalRow, ordinal: Int): ByteBuffer = row match {
    case unsafe: UnsafeRow if unsafe.getBaseObject.isInstanceOf[Array[Byte]] =>
      val offsetAndSize = unsafe.getLong(ordinal)
      val offset        = unsafe.getBaseOffset - Platform.BYTE_ARRAY_OFFSET + (offsetAndSize >>> 32)
      ByteBuffer.wrap(unsafe.getBaseObject.asInstanceOf[Array[Byte]], offset.toInt, offsetAndSize.toInt)
    case _ => ByteBuffer.wrap(row.getBinary(ordinal))
  }
}

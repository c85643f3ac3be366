package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

import io.github.semyonsinchenko.safetensors.format.ByteRange

/** A row of which all is there but bytes of tensors: those of many rows may be read together. */
private[read] final case class PlannedRow(row: InternalRow, missing: Vector[MissingBytes])

/** Where bytes are in the file, and where they belong in the row. */
private[read] final case class MissingBytes(range: ByteRange, struct: GenericInternalRow, ordinal: Int) {
  def fill(bytes: Array[Byte]): Unit = struct.update(ordinal, bytes)
}

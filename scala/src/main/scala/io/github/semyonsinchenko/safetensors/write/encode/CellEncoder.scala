package io.github.semyonsinchenko.safetensors.write.encode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.write.memory.Payload

/** Turns the cells of one column into tensors' bytes; chosen once for the column. */
private[write] trait CellEncoder {

  /**
   * Appends the bytes of a row's cell, as [[encode]] does.
   *
   * @throws InvalidCellException if it is null or no tensor
   */
  final def append(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample = {
    if (row.isNullAt(ordinal))
      throw new InvalidCellException("null, and tensors have no nulls. Fill it, or filter the row out")
    encode(row, ordinal, payloadOf)
  }

  /**
   * Appends a cell's bytes to the payload for its dtype, and tells what sample it is. The cell is not null.
   *
   * @throws InvalidCellException if it is no tensor
   */
  def encode(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample
}

/** The numbers of a cell as one array. */
private[write] trait CellValues {
  def apply(row: InternalRow, ordinal: Int): ArrayData
}

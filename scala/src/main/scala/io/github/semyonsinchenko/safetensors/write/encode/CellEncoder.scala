package io.github.semyonsinchenko.safetensors.write.encode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.write.memory.Payload

/** Encodes the cells of one column as tensor bytes. It is chosen once per column. */
private[write] trait CellEncoder {

  /**
   * Appends the bytes of a row's cell, as [[encode]] does.
   *
   * @throws InvalidCellException if the cell is null or is not a valid tensor
   */
  final def append(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample = {
    if (row.isNullAt(ordinal))
      throw new InvalidCellException("null, and tensors have no nulls. Fill it, or filter the row out")
    encode(row, ordinal, payloadOf)
  }

  /**
   * Appends the bytes of a cell to the payload of its dtype, and returns its dtype and shape. The cell is not null.
   *
   * @throws InvalidCellException if the cell is not a valid tensor
   */
  def encode(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample
}

/** Reads the numbers of a cell as one array. */
private[write] trait CellValues {
  def apply(row: InternalRow, ordinal: Int): ArrayData
}

package io.github.semyonsinchenko.safetensors.write.encode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
import org.apache.spark.sql.catalyst.util.ArrayData

/** Reads Spark ML vectors in their row format: `struct<type: tinyint, size: int, indices: array<int>, values: array<double>>`. */
private[write] object VectorValues extends CellValues {
  private val Fields  = 4
  private val Type    = 0
  private val Size    = 1
  private val Indices = 2
  private val Values  = 3
  private val Sparse  = 0

  override def apply(row: InternalRow, ordinal: Int): ArrayData = {
    val vector = row.getStruct(ordinal, Fields)
    if (vector.getByte(Type) == Sparse) dense(vector) else vector.getArray(Values)
  }

  private def dense(vector: InternalRow): ArrayData = {
    val all     = new Array[Double](vector.getInt(Size))
    val indices = vector.getArray(Indices)
    val values  = vector.getArray(Values)
    (0 until indices.numElements()).foreach(i => all(indices.getInt(i)) = values.getDouble(i))
    UnsafeArrayData.fromPrimitiveArray(all)
  }
}

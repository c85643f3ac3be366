package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.connector.read.LocalScan
import org.apache.spark.sql.types.{LongType, StructField, StructType}

/** Returns the row count from the listing in `times` columns. It opens no file. */
private[read] final class CountScan(plan: ScanPlan, times: Int) extends LocalScan {

  override def readSchema(): StructType =
    StructType(Seq.tabulate(times)(i => StructField(s"count_$i", LongType, nullable = false)))

  override def description(): String = s"safetensors, row count of ${plan.parts.size} files from the listing"

  override def rows(): Array[InternalRow] = {
    plan.source.check()
    Array(new GenericInternalRow(Array.fill[Any](times)(plan.rowCount.get)))
  }
}

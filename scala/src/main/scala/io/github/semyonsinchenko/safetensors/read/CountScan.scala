package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.connector.read.LocalScan
import org.apache.spark.sql.types.{LongType, StructField, StructType}

/** The number of rows, `times` over, as the listing has it: nothing is opened. */
private[read] final class CountScan(plan: ScanPlan, times: Int) extends LocalScan {

  override def readSchema(): StructType =
    StructType(Seq.tabulate(times)(i => StructField(s"count_$i", LongType, nullable = false)))

  override def description(): String = s"safetensors, rows counted of ${plan.parts.size} files by the listing"

  override def rows(): Array[InternalRow] = {
    plan.source.check()
    Array(new GenericInternalRow(Array.fill[Any](times)(plan.rowCount.get)))
  }
}

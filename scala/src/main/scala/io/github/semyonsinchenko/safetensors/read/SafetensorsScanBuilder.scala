package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{
  Scan,
  ScanBuilder,
  SupportsPushDownRequiredColumns,
  SupportsPushDownV2Filters
}
import org.apache.spark.sql.types.StructType

import io.github.semyonsinchenko.safetensors.dataset.DataFile

/** Collects what the query needs of the files: columns, fields of them, and conditions. */
private[safetensors] final class SafetensorsScanBuilder(
    files: Seq[DataFile],
    layout: Layout,
    schema: StructType,
    conf: Configuration)
    extends ScanBuilder
    with SupportsPushDownRequiredColumns
    with SupportsPushDownV2Filters {

  private var required = schema
  private var pushed   = Seq.empty[(Predicate, TensorFilter)]

  override def pruneColumns(requiredSchema: StructType): Unit = required = requiredSchema

  /** Takes those that headers decide, and gives the others back. */
  override def pushPredicates(predicates: Array[Predicate]): Array[Predicate] = {
    pushed = predicates.toSeq.flatMap(predicate => layout.filter(predicate).map(predicate -> _))
    predicates.filterNot(predicate => pushed.exists(_._1 eq predicate))
  }

  override def pushedPredicates(): Array[Predicate] = pushed.map(_._1).toArray

  override def build(): Scan = new SafetensorsScan(files, layout, schema, required, pushed, conf)
}

package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownRequiredColumns}
import org.apache.spark.sql.types.StructType

import io.github.semyonsinchenko.safetensors.dataset.DataFile

/** Collects what the query needs of the files: columns, and fields of them. */
private[safetensors] final class SafetensorsScanBuilder(
    files: Seq[DataFile],
    layout: Layout,
    schema: StructType,
    conf: Configuration)
    extends ScanBuilder
    with SupportsPushDownRequiredColumns {

  private var required = schema

  override def pruneColumns(requiredSchema: StructType): Unit = required = requiredSchema

  override def build(): Scan = new SafetensorsScan(files, layout, schema, required, conf)
}

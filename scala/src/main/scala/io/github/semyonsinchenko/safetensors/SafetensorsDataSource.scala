package io.github.semyonsinchenko.safetensors

import java.util

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.connector.catalog.{Table, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.{DataSourceRegister, StreamSinkProvider}
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.Snapshot
import io.github.semyonsinchenko.safetensors.read.{ReadOptions, SchemaInference}
import io.github.semyonsinchenko.safetensors.write.plan.CellType

/** The data source `safetensors`. */
final class SafetensorsDataSource extends TableProvider with DataSourceRegister
    with StreamSinkProvider {

  override def shortName(): String = "safetensors"

  // Writes, and reads with `.schema(...)`, have a schema. The directory of a write need not exist yet.
  override def supportsExternalMetadata(): Boolean = true

  // The snapshot that the schema was inferred from. Spark asks for the table next, which then has the same state.
  private var inferred = Option.empty[(CaseInsensitiveStringMap, Snapshot)]

  override def inferSchema(options: CaseInsensitiveStringMap): StructType = {
    SafetensorsTable.checkOptionNames(options)
    val conf     = SafetensorsTable.hadoopConf(options)
    val snapshot = SafetensorsTable.snapshot(options, new StructType)
    inferred = Some(options -> snapshot)
    SchemaInference.of(snapshot, ReadOptions.of(options, conf), conf)
  }

  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: util.Map[String, String]): Table = {
    SafetensorsTable.checkPartitioning(partitioning)
    val options = new CaseInsensitiveStringMap(properties)
    val loaded  = inferred.collect { case (`options`, snapshot) => snapshot }
    if (NamedTable.isNew(options)) CellType.check(schema)
    if (NamedTable.isOne(options)) new NamedTable(schema, options, loaded)
    else new SafetensorsTable(schema, options, loaded)
  }

  // Spark calls this if the table does not support streams. Its own error would not say what to do instead.
  override def createSink(
      context: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode): Sink = throw new InvalidRequestException(
    "Safetensors does not support streaming writes. Write each micro-batch as an append with `foreachBatch`: " +
      "`batch.write.format(\"safetensors\").mode(\"append\")`.")
}

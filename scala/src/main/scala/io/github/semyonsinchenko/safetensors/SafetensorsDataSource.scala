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

/** What `format("safetensors")` names. */
final class SafetensorsDataSource extends TableProvider with DataSourceRegister
    with StreamSinkProvider {

  override def shortName(): String = "safetensors"

  // A write brings its schema, and the directory may not be there yet; so does a read with `.schema(...)`.
  override def supportsExternalMetadata(): Boolean = true

  // What the schema was inferred from. Spark asks for the table next, which is then of the same state.
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
    new SafetensorsTable(schema, options, inferred.collect { case (`options`, snapshot) => snapshot })
  }

  // Spark asks here once it has seen that the table takes no stream, and would refuse without a way out.
  override def createSink(
      context: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode): Sink = throw new InvalidRequestException(
    "Safetensors is no sink for a stream. Write its micro-batches with `foreachBatch`, each as an append: " +
      "`batch.write.format(\"safetensors\").mode(\"append\")`.")
}

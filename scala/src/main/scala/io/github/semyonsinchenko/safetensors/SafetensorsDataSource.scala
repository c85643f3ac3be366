package io.github.semyonsinchenko.safetensors

import java.util

import org.apache.spark.sql.connector.catalog.{Table, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.dataset.{DatasetFiles, InvalidRequestException, Location}
import io.github.semyonsinchenko.safetensors.read.{ReadOptions, SchemaInference}

/** What `format("safetensors")` names. */
final class SafetensorsDataSource extends TableProvider with DataSourceRegister {

  override def shortName(): String = "safetensors"

  // A write brings its schema, and the directory may not be there yet; so does a read with `.schema(...)`.
  override def supportsExternalMetadata(): Boolean = true

  override def inferSchema(options: CaseInsensitiveStringMap): StructType = {
    SafetensorsTable.checkOptionNames(options)
    if (!ReadOptions.of(options).inferSchema) throw new InvalidRequestException(
      "Reading safetensors needs a schema: give one with `.schema(...)`, or set the option `inferSchema` to `true` to " +
        "take it from the header of the first file.")
    val conf = SafetensorsTable.hadoopConf(options)
    SchemaInference.of(Location.all(options, conf).flatMap(DatasetFiles.of(_, conf)), conf)
  }

  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: util.Map[String, String]): Table = {
    if (partitioning.nonEmpty) throw new InvalidRequestException(
      "Safetensors datasets are not partitioned: drop `partitionBy` and `clusterBy`. To lay out rows, use `repartition` or " +
        "`sortWithinPartitions` before the write, or write a dataset for each value.")
    new SafetensorsTable(schema, new CaseInsensitiveStringMap(properties))
  }
}

package io.github.semyonsinchenko.safetensors.read.columns

import org.apache.spark.sql.connector.catalog
import org.apache.spark.sql.types._

/** `_metadata`: the file of a row, with the field names of Spark's file sources, and the metadata in its header. */
private[safetensors] object MetadataColumn extends catalog.MetadataColumn {
  val Name = "_metadata"

  override def name(): String = Name
  override def dataType(): DataType =
    StructType(FileField.all.map(field => StructField(field.name, field.dataType, nullable = false)))
  override def isNullable(): Boolean = false
  override def comment(): String     = "The file that a row comes from; `header` is its `__metadata__`."
}

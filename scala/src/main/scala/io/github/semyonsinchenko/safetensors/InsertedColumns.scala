package io.github.semyonsinchenko.safetensors

import org.apache.spark.sql.types.{StringType, StructField, StructType}

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.{DatasetMode, Manifest}
import io.github.semyonsinchenko.safetensors.read.{Layout, StoredTypes}
import io.github.semyonsinchenko.safetensors.types.TensorStruct
import io.github.semyonsinchenko.safetensors.write.plan.{CellType, WriteOptions}

/** The columns of rows that are inserted into a path. They may be null: a null is an error of the write, which names the row. */
private[safetensors] object InsertedColumns {

  /** Those that were written; none if the manifest does not tell. Keys come first. */
  def written(manifest: Manifest): Option[StructType] = manifest.mode match {
    case DatasetMode.Batch    => columns(manifest).filter(_.nonEmpty)
    case DatasetMode.KeyValue => columns(manifest).filterNot(_.exists(isSingle)).flatMap(keyed(manifest, _))
  }

  private def columns(manifest: Manifest): Option[StructType] = {
    val types = manifest.schema.map(column =>
      manifest.mode match {
        case DatasetMode.Batch    => StoredTypes.of(column)
        case DatasetMode.KeyValue => StoredTypes.named(column)
      })
    Option.when(types.forall(_.isDefined))(StructType(manifest.schema.zip(types.flatten).map {
    case (column, of) => StructField(column.name, of)
  }))
  }

  // The manifest does not tell where in the rows the keys were. Taken for a key, an array is an error of Spark, but a number
  // would be one.
  private def isSingle(field: StructField): Boolean =
    CellType.of(field.dataType).forall(_.isInstanceOf[CellType.Scalars])

  private def keyed(manifest: Manifest, columns: StructType): Option[StructType] =
    manifest.options.get(WriteOptions.NameColumn.name).map(key =>
      StructType(StructField(key, StringType) +: columns))

  /**
   * Tensors, as a layout reads them.
   *
   * @param read the columns that the layout reads
   * @throws InvalidRequestException if its rows cannot be written
   */
  def tensors(layout: Layout, manifest: Manifest, read: StructType, table: String): StructType =
    (layout, manifest.mode) match {
      case (Layout.Rows, DatasetMode.Batch) =>
        StructType(read.map(field => StructField(field.name, StoredTypes.withNulls(field.dataType))))
      case (Layout.Long, DatasetMode.KeyValue) if manifest.schema.size == 1 =>
        val tensor = StructField(manifest.schema.head.name, StoredTypes.withNulls(TensorStruct.dataType))
        keyed(manifest, StructType(Seq(tensor))).getOrElse(refuse(layout, table))
      case _ => refuse(layout, table)
    }

  private def refuse(layout: Layout, table: String): Nothing = throw new InvalidRequestException(
    s"Rows of the layout `${layout.name}` cannot be written to this dataset. Insert rows like those that were written into $table.")
}

package io.github.semyonsinchenko.safetensors

import org.apache.spark.sql.types.{StringType, StructField, StructType}

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.{DatasetMode, Manifest}
import io.github.semyonsinchenko.safetensors.read.{Layout, StoredTypes}
import io.github.semyonsinchenko.safetensors.types.TensorStruct
import io.github.semyonsinchenko.safetensors.write.plan.{CellType, WriteOptions}

/** The columns of rows that are inserted into a path. They may be null: a null is an error of the write, which names the row. */
private[safetensors] object InsertedColumns {

  /** Those that were written; none if the manifest does not tell. */
  def written(manifest: Manifest): Option[StructType] = manifest.mode match {
    case DatasetMode.Batch    => columns(manifest).filter(_.nonEmpty)
    case DatasetMode.KeyValue => columns(manifest).flatMap(withKeys(manifest, _))
  }

  private def columns(manifest: Manifest): Option[StructType] = {
    val types = manifest.schema.map(column =>
      manifest.mode match {
        case DatasetMode.Batch    => StoredTypes.of(column).orElse(StoredTypes.named(column))
        case DatasetMode.KeyValue => StoredTypes.named(column)
      })
    Option.when(types.forall(_.isDefined))(StructType(manifest.schema.zip(types.flatten).map {
    case (column, of) => StructField(column.name, of)
  }))
  }

  /** The columns with that of the keys where it was. Older versions did not record that: then it is the first one. */
  private def withKeys(manifest: Manifest, columns: StructType): Option[StructType] =
    keyed(manifest, columns, manifest.keyPlace.getOrElse(0))
      .filter(_ => manifest.keyPlace.isDefined || !columns.exists(isSingle))

  // Taken for a key, an array is an error of Spark, but a number would be one.
  private def isSingle(field: StructField): Boolean =
    CellType.of(field.dataType).forall(_.isInstanceOf[CellType.Scalars])

  private def keyed(manifest: Manifest, columns: StructType, place: Int): Option[StructType] =
    manifest.options.get(WriteOptions.NameColumn.name).map { key =>
      val (before, behind) = columns.fields.splitAt(place)
      // The option `columns` may name the keys too, so that they are tensors as well.
      if (columns.fieldNames.contains(key)) columns
      else StructType((before :+ StructField(key, StringType)) ++ behind)
    }

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
        keyed(manifest, StructType(Seq(tensor)), place = 0).getOrElse(refuse(layout, table))
      case _ => refuse(layout, table)
    }

  private def refuse(layout: Layout, table: String): Nothing = throw new InvalidRequestException(
    s"Rows of the layout `${layout.name}` cannot be written to this dataset. Insert rows like those that were written into $table.")
}

package io.github.semyonsinchenko.safetensors.read

import scala.util.{Try, Using}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{ArrayType, DataType, StructField, StructType}

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, Snapshot}
import io.github.semyonsinchenko.safetensors.read.columns.{
  DecodedTypes,
  RowColumn,
  StoredColumn,
  StoredColumns
}
import io.github.semyonsinchenko.safetensors.storage.Sources

/** Checks on the driver that columns can be decoded to the types of a schema. A task checks each file again. */
private[safetensors] object StoredTypes {

  /** What fits instead, if a column that is stored like this cannot be decoded to the type. */
  def misfit(to: DataType, record: ColumnRecord): Option[String] =
    StoredColumn.of(record).flatMap(DecodedTypes.misfit(to, _))

  /** The type of a column that was written, with elements that may be null. None if the manifest does not tell. */
  def of(record: ColumnRecord): Option[DataType] =
    StoredColumn.of(record).map(stored => withNulls(DecodedTypes.of(stored)))

  /** The same of a column whose rows may differ, as tensors by key may. */
  def named(record: ColumnRecord): Option[DataType] =
    record.sparkType.flatMap(DecodedTypes.named).map(withNulls)

  def withNulls(of: DataType): DataType = of match {
    case ArrayType(element, _) => ArrayType(withNulls(element))
    case StructType(fields) =>
      StructType(fields.map(field => StructField(field.name, withNulls(field.dataType))))
    case other => other
  }

  /** The number of dimensions of a type's values. */
  def depth(of: DataType): Int = if (DecodedTypes.vector(of)) 1 else DecodedTypes.levels(of)._1

  /** @throws InvalidRequestException if a column is stored in a way that does not fit its type in the schema */
  private[read] def check(
      schema: StructType,
      snapshot: Snapshot,
      options: ReadOptions,
      conf: Configuration): Unit = {
    val decoded =
      if (options.layout != Layout.Rows) Nil
      else schema.fields.toSeq.map(Layout.Rows.column).collect { case column: RowColumn.Decoded => column }
    lazy val stored = columns(snapshot, options, conf)
    for {
      column <- decoded
      (name, there) <- stored.find(_._1 == column.name).orElse(stored.find(other =>
          SQLConf.get.resolver(other._1, column.name)))
      choices <- DecodedTypes.misfit(column.dataType, there)
    } throw new InvalidRequestException(
      s"Column `${column.name}` of the schema is ${column.dataType.simpleString}, but `$name` is stored as ${there.show}, which " +
        s"is read as $choices. Give the column one of these types.")
  }

  /** The columns that manifests name, or else those of the first file, if it can be read. */
  private def columns(
      snapshot: Snapshot,
      options: ReadOptions,
      conf: Configuration): Seq[(String, StoredColumn)] =
    if (snapshot.manifests.nonEmpty)
      for (manifest <- snapshot.manifests; record <- manifest.schema; stored <- StoredColumn.of(record))
        yield record.name -> stored
    else snapshot.files.headOption.toSeq.flatMap { file =>
      Try {
        val header = Using.resource(Sources.open(file, conf))(Sources.header(_, options.repeatedNames))
        val stored = new StoredColumns(file, header)
        header.tensors.map(tensor => tensor.name -> stored(tensor))
      }.getOrElse(Nil)
    }
}

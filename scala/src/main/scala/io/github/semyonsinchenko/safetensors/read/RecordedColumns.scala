package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

import io.github.semyonsinchenko.safetensors.common.{InvalidRequestException, NearestName}
import io.github.semyonsinchenko.safetensors.dataset.{DatasetMode, Snapshot}

/**
 * Checks that manifests name the columns of a schema. A column that no shard can have is a misspelt name, or one that a table was
 * altered to have. It would be null in all rows. Files without a manifest may lack a tensor.
 */
private[read] object RecordedColumns {

  private val MaxShown = 20

  /** @throws InvalidRequestException if no dataset has a column of the schema */
  def check(schema: StructType, snapshot: Snapshot, layout: Layout): Unit = {
    val names = recorded(snapshot, layout)
    if (names.nonEmpty) asked(schema, layout).find(name => !names.exists(SQLConf.get.resolver(_, name)))
      .foreach(name => throw absent(name, names))
  }

  /** The names that the manifests know. Empty if other columns may be there. */
  private def recorded(snapshot: Snapshot, layout: Layout): Seq[String] = {
    val mode = layout match {
      case _: Layout.Keyed => DatasetMode.KeyValue
      case _               => DatasetMode.Batch
    }
    if (layout == Layout.Long || !snapshot.areDatasets || snapshot.manifests.exists(_.mode != mode)) Nil
    else snapshot.manifests.flatMap(_.schema).flatMap(column =>
      if (layout == Layout.Wide) column.tensors else Seq(column.name)).distinct
  }

  private def asked(schema: StructType, layout: Layout): Seq[String] = layout match {
    case Layout.Keyed(key, separator) =>
      val columns = schema.fieldNames.toSeq.filterNot(SQLConf.get.resolver(_, key))
      // The names of the tensors do not contain that of a single column.
      if (separator.isEmpty && columns.size == 1) Nil else columns
    case _ => schema.fieldNames.toSeq
  }

  private def absent(name: String, there: Seq[String]) = {
    val more = if (there.size > MaxShown) s" and ${there.size - MaxShown} more" else ""
    new InvalidRequestException(
      s"Column `$name` of the schema is not in the dataset, which has ${there.take(MaxShown).mkString(", ")}$more." +
        s"${NearestName.hint(name, there)} Correct the name, or leave it out. A column added by ALTER TABLE exists once " +
        "INSERT OVERWRITE has rewritten all rows.")
  }
}

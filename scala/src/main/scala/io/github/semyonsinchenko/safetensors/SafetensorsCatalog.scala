package io.github.semyonsinchenko.safetensors

import java.util

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.analysis.{NoSuchFunctionException, NoSuchTableException}
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.{DataException, InvalidRequestException, NoDataException}
import io.github.semyonsinchenko.safetensors.functions.CatalogFunctions
import io.github.semyonsinchenko.safetensors.read.ReadOptions
import io.github.semyonsinchenko.safetensors.write.commit.Existing

/**
 * Tables by path, and the tensor functions: ``SELECT safetensors.st_to_array(x) FROM safetensors.`/data/points` ``, in a session
 * with `spark.sql.catalog.safetensors=io.github.semyonsinchenko.safetensors.SafetensorsCatalog`.
 *
 * A name is the path of anything that `spark.read.format("safetensors").load` takes. It has no schema, so that one is inferred.
 * Of a dataset in batches a row is a sample, so that what was written comes back; of one by key a row is a tensor, as each of
 * its files has other tensors; of anything else a row is a file. A namespace says otherwise:
 * ``safetensors.long.`/models/bert.safetensors` ``. That is no option, because Spark asks a catalog for a table's columns before
 * it tells the options of the query. What counts for all tables stands behind the catalog's own setting, as in
 * `spark.sql.catalog.safetensors.layout=long`.
 *
 * `CREATE TABLE ... AS SELECT` and `REPLACE TABLE ... AS SELECT` write a dataset, in one commit. Nothing here deletes one.
 */
final class SafetensorsCatalog extends StagingTableCatalog with LayoutNamespaces with FunctionCatalog {

  private var catalogName    = "safetensors"
  private var catalogOptions = CaseInsensitiveStringMap.empty

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = {
    catalogName = name
    catalogOptions = options
  }

  override def name(): String = catalogName

  /** @throws NoTableException if there is nothing to read */
  override def loadTable(ident: Identifier): Table =
    try PathTable.of(optionsOf(ident))
    catch { case e: NoDataException => throw new NoTableException(ident, e.getMessage) }

  // For a write. Spark may create what it does not find, and knows that by this exception alone. For a read that would end in
  // words about Spark's own files by path.
  override def loadTable(ident: Identifier, privileges: util.Set[TableWritePrivilege]): Table =
    try loadTable(ident)
    catch { case _: NoTableException => throw new NoSuchTableException(ident) }

  override def loadTable(ident: Identifier, version: String): Table = refuse("has no versions", "")

  override def loadTable(ident: Identifier, timestamp: Long): Table = refuse("has no versions", "")

  /** Whether there is something at the path, be it damaged. */
  override def tableExists(ident: Identifier): Boolean =
    isNamespace(ident.namespace) && (
      try { SafetensorsTable.snapshot(optionsOf(ident), new StructType); true }
      catch {
        case _: NoDataException                            => false
        case _: InvalidRequestException | _: DataException => true
      })

  /** None: what lies at paths is not listed. */
  override def listTables(namespace: Array[String]): Array[Identifier] = {
    loadNamespaceMetadata(namespace)
    Array.empty
  }

  override def stageCreate(
      ident: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: util.Map[String, String]): StagedTable =
    stage(ident, columns, partitions, properties, Existing.Refuse)

  override def stageReplace(
      ident: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: util.Map[String, String]): StagedTable =
    stage(ident, columns, partitions, properties, Existing.Replace)

  override def stageCreateOrReplace(
      ident: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: util.Map[String, String]): StagedTable =
    stage(ident, columns, partitions, properties, Existing.Replace)

  private def stage(
      ident: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: util.Map[String, String],
      existing: Existing): StagedTable = {
    SafetensorsTable.checkPartitioning(partitions)
    val options = SafetensorsTable.merged(optionsOf(ident), CreateOptions.of(properties))
    val schema  = StructType(columns.map(c => StructField(c.name, c.dataType, c.nullable)))
    new StagedDataset(schema, options, existing)
  }

  /** The options that a table is loaded with. */
  private def optionsOf(ident: Identifier): CaseInsensitiveStringMap = {
    val layout = layoutOf(ident).map(ReadOptions.RowLayout.name -> _.name)
    val own    = new CaseInsensitiveStringMap((Map("path" -> ident.name) ++ layout).asJava)
    SafetensorsTable.merged(catalogOptions, own)
  }

  override def createTable(
      ident: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: util.Map[String, String]): Table = throw StagedDataset.withoutRows

  override def alterTable(ident: Identifier, changes: TableChange*): Table =
    refuse("cannot be altered", "Replace it by CREATE OR REPLACE TABLE ... AS SELECT.")

  // Nothing is deleted: a path may hold what no table of this catalog has written.
  override def dropTable(ident: Identifier): Boolean =
    refuse("cannot be dropped", "Delete the directory, if the data is to go.")

  override def renameTable(from: Identifier, to: Identifier): Unit =
    refuse("cannot be renamed", "Rename the directory.")

  private def refuse(what: String, instead: String): Nothing = throw new InvalidRequestException(
    s"A table of the catalog `$catalogName` is what lies at a path: it $what. $instead".trim)

  override def listFunctions(namespace: Array[String]): Array[Identifier] =
    if (namespace.isEmpty) CatalogFunctions.all.map(f => Identifier.of(namespace, f.name)).toArray
    else Array.empty

  override def loadFunction(ident: Identifier): UnboundFunction =
    CatalogFunctions.all.find(_.name.equalsIgnoreCase(ident.name)).filter(_ => ident.namespace.isEmpty)
      .getOrElse(throw new NoSuchFunctionException(ident))
}

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
 * A table name is any path that `spark.read.format("safetensors").load` accepts. Its schema is inferred. A row is a sample of a
 * dataset in batches, a tensor of a key-value dataset, and a file of anything else. A namespace selects another layout:
 * ``safetensors.long.`/models/bert.safetensors` ``. An option could not, because Spark asks for a table's columns before it
 * passes the options of a query. Settings of the catalog apply to all its tables, as in
 * `spark.sql.catalog.safetensors.layout=long`.
 *
 * `CREATE TABLE ... AS SELECT` and `REPLACE TABLE ... AS SELECT` write a dataset in one commit. The catalog never deletes one.
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

  // For a write. Only this exception lets Spark create a missing table. For a read, it would lead to a message about Spark's
  // own path-based tables.
  override def loadTable(ident: Identifier, privileges: util.Set[TableWritePrivilege]): Table =
    try PathTable.ofWrite(optionsOf(ident), layoutOf(ident))
    catch { case _: NoDataException => throw new NoSuchTableException(ident) }

  override def loadTable(ident: Identifier, version: String): Table = refuse("has no versions", "")

  override def loadTable(ident: Identifier, timestamp: Long): Table = refuse("has no versions", "")

  /** Whether there is data at the path, even if it is damaged. */
  override def tableExists(ident: Identifier): Boolean =
    isNamespace(ident.namespace) && (
      try { SafetensorsTable.snapshot(optionsOf(ident), new StructType); true }
      catch {
        case _: NoDataException                            => false
        case _: InvalidRequestException | _: DataException => true
      })

  /** Always empty: paths are not listed. */
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

  /** The options to load a table with. */
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
    refuse("cannot be altered", "Use CREATE OR REPLACE TABLE ... AS SELECT.")

  // Nothing is deleted: a path may contain data that this catalog did not write.
  override def dropTable(ident: Identifier): Boolean =
    refuse("cannot be dropped", "Delete the directory to delete the data.")

  override def renameTable(from: Identifier, to: Identifier): Unit =
    refuse("cannot be renamed", "Rename the directory.")

  private def refuse(what: String, instead: String): Nothing = throw new InvalidRequestException(
    s"A table of the catalog `$catalogName` is the data at a path: it $what. $instead".trim)

  override def listFunctions(namespace: Array[String]): Array[Identifier] =
    if (namespace.isEmpty) CatalogFunctions.all.map(f => Identifier.of(namespace, f.name)).toArray
    else Array.empty

  override def loadFunction(ident: Identifier): UnboundFunction =
    CatalogFunctions.all.find(_.name.equalsIgnoreCase(ident.name)).filter(_ => ident.namespace.isEmpty)
      .getOrElse(throw new NoSuchFunctionException(ident))
}

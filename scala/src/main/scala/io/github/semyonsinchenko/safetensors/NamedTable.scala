package io.github.semyonsinchenko.safetensors

import java.util

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.TableCatalog
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.NoDataException
import io.github.semyonsinchenko.safetensors.dataset.{DatasetMode, Location, Manifest, Snapshot}
import io.github.semyonsinchenko.safetensors.read.{Layout, ReadOptions}
import io.github.semyonsinchenko.safetensors.read.columns.LongSchema
import io.github.semyonsinchenko.safetensors.types.TensorStruct
import io.github.semyonsinchenko.safetensors.write.plan.{WriteOptions, WritePlan}

/**
 * A table of Spark's own catalog, with the columns that it was created with. Its rows are those that were written, by samples or
 * by keys, unless an option names another layout. It has none until something is written.
 *
 * @param options its properties, with the path that the catalog has made absolute
 */
private[safetensors] final class NamedTable(
    schema: StructType,
    options: CaseInsensitiveStringMap,
    loaded: Option[Snapshot])
    extends SafetensorsTable(schema, options, loaded) {

  override def properties(): util.Map[String, String] =
    options.asCaseSensitiveMap.asScala.filter { case (name, _) => NamedTable.isProperty(name, options) }
      .concat(Location.asGiven(options).map(TableCatalog.PROP_LOCATION -> _)).asJava

  override protected def readSnapshot(options: CaseInsensitiveStringMap): Snapshot =
    try super.readSnapshot(options)
    catch { case _: NoDataException => Snapshot.empty }

  // Spark passes the path of `saveAsTable` with the call too, as it was given.
  override protected def checked(callOptions: CaseInsensitiveStringMap): CaseInsensitiveStringMap = {
    val others = callOptions.asCaseSensitiveMap.asScala.filterNot { case (name, _) => Location.isKey(name) }
    super.checked(new CaseInsensitiveStringMap(others.asJava))
  }

  override protected def readOptions(options: CaseInsensitiveStringMap): ReadOptions = {
    val asked = super.readOptions(options)
    if (options.containsKey(ReadOptions.RowLayout.name)) asked
    else asked.copy(layout = layout)
  }

  private def manifest: Option[Manifest] = snapshot.manifests.headOption

  override protected def ragged: Seq[String] = manifest.toSeq.flatMap(_.ragged)

  /** The options of the last write, or else those of the table. */
  private def lastOptions: CaseInsensitiveStringMap =
    manifest.fold(options)(SafetensorsTable.optionsOfLast)

  private def isByKey: Boolean =
    manifest.fold(options.containsKey(WriteOptions.NameColumn.name))(_.mode == DatasetMode.KeyValue)

  /** The column with the keys. */
  private def key: Option[String] = Option.when(isByKey)(lastOptions)
    .flatMap(last => WriteOptions.NameColumn.get(options).orElse(WriteOptions.NameColumn.get(last)))
    .filter(key => schema.exists(field => isSame(field.name, key)))

  private def separator: String = WriteOptions.Separator.get(lastOptions).get

  private def layout: Layout = {
    val own       = schema.filterNot(field => snapshot.partitions.exists(_.name == field.name))
    val isStructs = own.forall(field => TensorStruct.matches(field.dataType))
    if (key.isDefined)
      Layout.Keyed(key.get, Some(separator).filter(_ => manifest.exists(_.schema.size > 1)))
    else if (isByKey && schema == LongSchema.schema) Layout.Long
    else if (isStructs && manifest.forall(_.mode == DatasetMode.KeyValue)) Layout.Wide
    else Layout.Rows
  }

  private def isSame(one: String, other: String) = SQLConf.get.resolver(one, other)

  /** A write with neither `batch_size` nor `name_col` uses the options of the last write. */
  override protected def optionsOfWrite(callOptions: CaseInsensitiveStringMap): CaseInsensitiveStringMap =
    withLast(super.optionsOfWrite(callOptions))

  private def withLast(options: CaseInsensitiveStringMap): CaseInsensitiveStringMap =
    if (WriteOptions.modes.exists(options.containsKey)) options
    else SafetensorsTable.merged(lastOptions, options)

  /** @throws InvalidRequestException if the table could not be read with its columns afterwards */
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    val asked = optionsOfWrite(info.options)
    val named =
      Option.when(options.containsKey(ReadOptions.RowLayout.name))(ReadOptions.RowLayout.get(options).get)
    ReadBack.check(
      schema,
      WritePlan.of(WriteOptions.of(asked), info.schema),
      named,
      key.map(_ -> separator))
    super.newWriteBuilder(info)
  }
}

private[safetensors] object NamedTable {

  /** Whether the options are the properties of a table in Spark's catalog. */
  def isOne(options: CaseInsensitiveStringMap): Boolean = options.containsKey(TableCatalog.PROP_PROVIDER)

  /**
   * Whether the table is about to be created, in the warehouse. Its path is set later. CREATE TABLE with a LOCATION looks like any use
   * of a table, and DROP TABLE must not fail.
   */
  def isNew(options: CaseInsensitiveStringMap): Boolean =
    isOne(options) && Location.asGiven(options).isEmpty

  /** Options occur a second time, with a prefix. */
  private def isProperty(name: String, options: CaseInsensitiveStringMap): Boolean =
    !Location.isKey(name) && !options.containsKey(TableCatalog.OPTION_PREFIX + name)
}

package io.github.semyonsinchenko.safetensors

import java.util

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{TableCapability, TableCatalog}
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.{InvalidRequestException, OptionSpec}
import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, DatasetMode, Location, Manifest, Snapshot}
import io.github.semyonsinchenko.safetensors.read.{Layout, ReadOptions, SchemaInference}
import io.github.semyonsinchenko.safetensors.write.plan.WriteOptions

/**
 * A table of the catalog: the data at a path.
 *
 * @param options the options that the table was loaded with, including its layout
 * @param isTyped whether its columns are those of inserted rows. If so, Spark gives rows the names and types of its columns; if
 *                not, rows of any columns are written, and tensors are read.
 * @param like    the columns of the dataset, if inserted rows are the tensors of such
 */
private[safetensors] final class PathTable private (
    override val schema: StructType,
    private val options: CaseInsensitiveStringMap,
    private val loaded: Snapshot,
    isTyped: Boolean = false,
    override protected val like: Seq[ColumnRecord] = Nil)
    extends SafetensorsTable(schema, options, Some(loaded)) {

  override def capabilities(): util.Set[TableCapability] =
    if (isTyped) super.capabilities() else PathTable.anySchema(super.capabilities())

  override def properties(): util.Map[String, String] = {
    val location = Location.all(options, SafetensorsTable.hadoopConf(options)).mkString(", ")
    val written = manifest.toSeq.flatMap(_.options).map { case (name, value) =>
      TableCatalog.OPTION_PREFIX + name -> value
    }
    (written.toMap ++ Map(
      TableCatalog.PROP_PROVIDER -> "safetensors",
      TableCatalog.PROP_EXTERNAL -> "true",
      TableCatalog.PROP_LOCATION -> location)).asJava
  }

  private def manifest: Option[Manifest] = PathTable.manifestOf(options, loaded)

  override protected def ragged: Seq[String] = manifest.toSeq.flatMap(_.ragged)

  override def newScanBuilder(callOptions: CaseInsensitiveStringMap): ScanBuilder = {
    PathTable.ofColumns.foreach(checkUnchanged(_, callOptions))
    super.newScanBuilder(callOptions)
  }

  /** Spark asks for the columns before it passes a query's options. */
  private def checkUnchanged(option: OptionSpec[_], callOptions: CaseInsensitiveStringMap): Unit = {
    def text(from: CaseInsensitiveStringMap) = Option(from.get(option.name))
    val own                                  = text(options).orElse(option.default)
    if (text(callOptions).exists(asked => !own.exists(_.equalsIgnoreCase(asked))))
      throw new InvalidRequestException(
        s"The option `${option.name}` comes too late here: the table already has its columns. ${instead(
            option, callOptions)}")
  }

  private def instead(option: OptionSpec[_], callOptions: CaseInsensitiveStringMap): String = option match {
    case ReadOptions.RowLayout =>
      val layout = ReadOptions.RowLayout.get(callOptions).get
      s"Put it in the name: safetensors.${layout.name}.`${options.get("path")}`."
    case other =>
      s"Set `spark.sql.catalog.safetensors.${other.name}`, or use `spark.read.format(\"safetensors\")`."
  }

  /** A write with neither `batch_size` nor `name_col` uses the options of the last write. */
  override protected def optionsOfWrite(callOptions: CaseInsensitiveStringMap): CaseInsensitiveStringMap = {
    val asked = super.optionsOfWrite(callOptions)
    if (WriteOptions.modes.exists(asked.containsKey)) asked
    else manifest.fold(asked)(last => SafetensorsTable.merged(SafetensorsTable.optionsOfLast(last), asked))
  }
}

private[safetensors] object PathTable {

  /** The options that columns depend on. */
  private val ofColumns = Seq(
    ReadOptions.RowLayout,
    ReadOptions.MergeSchema,
    ReadOptions.Decode,
    ReadOptions.PathGlobFilter,
    ReadOptions.RecursiveFileLookup,
    ReadOptions.BasePath)

  /** Disables Spark's comparison of columns: arrays are written, and tensors are read. */
  def anySchema(capabilities: util.Set[TableCapability]): util.Set[TableCapability] = {
    val all = util.EnumSet.copyOf(capabilities)
    all.add(TableCapability.ACCEPT_ANY_SCHEMA)
    all
  }

  /** @throws NoDataException if there is nothing to read */
  def of(asked: CaseInsensitiveStringMap): PathTable = {
    SafetensorsTable.checkOptionNames(asked)
    val snapshot = SafetensorsTable.snapshot(asked, new StructType)
    val options  = SafetensorsTable.merged(defaults(manifestOf(asked, snapshot)), asked)
    val conf     = SafetensorsTable.hadoopConf(options)
    val read     = ReadOptions.of(options, conf)
    // A setting of the catalog is for the tables whose rows are samples.
    val decode = read.decode && read.layout == Layout.Rows
    val schema = SchemaInference.of(snapshot, read.copy(decode = decode), conf)
    new PathTable(schema, options, snapshot)
  }

  /**
   * The same for a write. A dataset has the columns and types that were written, so that INSERT takes columns by position, as Spark
   * does everywhere. If the name has a layout, they are those that this layout reads.
   *
   * @throws NoDataException if there is nothing there
   */
  def ofWrite(asked: CaseInsensitiveStringMap, layout: Option[Layout]): PathTable = {
    val table = of(asked)
    manifestOf(table.options, table.loaded).fold(table) { manifest =>
      val tensors = layout.map(InsertedColumns.tensors(_, manifest, table.schema, table.name()))
      tensors.orElse(InsertedColumns.written(manifest)).fold(table)(columns =>
        new PathTable(columns, table.options, table.loaded, isTyped = true,
          tensors.fold(Seq.empty[ColumnRecord])(_ => manifest.schema)))
    }
  }

  /** The manifest, if there is one path and it is a dataset. */
  private def manifestOf(options: CaseInsensitiveStringMap, snapshot: Snapshot): Option[Manifest] =
    Location.all(options, SafetensorsTable.hadoopConf(options)) match {
      case Seq(path) => snapshot.manifestOf(path)
      case _         => None
    }

  private def defaults(manifest: Option[Manifest]): CaseInsensitiveStringMap = {
    val layout = manifest.map(_.mode) match {
      case Some(DatasetMode.Batch)    => Layout.Rows
      case Some(DatasetMode.KeyValue) => Layout.Long
      case None                       => Layout.Wide
    }
    new CaseInsensitiveStringMap(
      Map(ReadOptions.InferSchema.name -> "true", ReadOptions.RowLayout.name -> layout.name).asJava)
  }
}

package io.github.semyonsinchenko.safetensors

import java.io.IOException
import java.util

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.{DataException, InvalidRequestException, OptionSpec}
import io.github.semyonsinchenko.safetensors.dataset.{
  ColumnRecord,
  Location,
  Manifest,
  SharedSnapshot,
  Snapshot,
  SnapshotTable
}
import io.github.semyonsinchenko.safetensors.read.{ReadOptions, ReadSource, SafetensorsScanBuilder}
import io.github.semyonsinchenko.safetensors.read.columns.ColumnNames
import io.github.semyonsinchenko.safetensors.write.SafetensorsWriteBuilder
import io.github.semyonsinchenko.safetensors.write.commit.Existing
import io.github.semyonsinchenko.safetensors.write.plan.WriteOptions

/**
 * A dataset, a checkpoint or a single file, as a table that can be read and written.
 *
 * All scans of a table read one snapshot. Tables are equal if their options, columns and snapshots are equal. Spark uses this
 * to find cached data.
 *
 * @param loaded the snapshot that the schema was inferred from. If it is missing, a snapshot is read when it is first needed. A
 *               table that is only written to needs none, and may have none yet.
 */
class SafetensorsTable(
    tableSchema: StructType,
    private val tableOptions: CaseInsensitiveStringMap,
    loaded: Option[Snapshot] = None)
    extends Table
    with SnapshotTable
    with SupportsRead
    with SupportsWrite
    with SupportsDeleteV2
    with SupportsMetadataColumns {

  // Spark's errors parse it as an identifier.
  override def name(): String =
    s"safetensors.`${Location.asGiven(tableOptions).mkString(", ").replace("`", "``")}`"

  override def toString: String = name()

  override def schema(): StructType = tableSchema

  // Without ACCEPT_ANY_SCHEMA, Spark casts inserted rows to the table's columns and uses their names.
  override def capabilities(): util.Set[TableCapability] = util.EnumSet.of(
    TableCapability.BATCH_READ,
    TableCapability.BATCH_WRITE,
    TableCapability.TRUNCATE)

  override def metadataColumns(): Array[MetadataColumn] = Array(read.columns.MetadataColumn)

  // A tensor with this name hides it.
  override def canRenameConflictingMetadataColumns(): Boolean = false

  override def newScanBuilder(callOptions: CaseInsensitiveStringMap): ScanBuilder = {
    ColumnNames.check(tableSchema)
    val options = checked(callOptions)
    val conf    = SafetensorsTable.hadoopConf(options)
    val ofScan =
      if (SafetensorsTable.readSameFiles(options, tableOptions)) snapshot else readSnapshot(options)
    ofScan.warnOfOthers()
    new SafetensorsScanBuilder(ReadSource(ofScan, readOptions(options), tableSchema)(conf))
  }

  @volatile private var current = new SharedSnapshot(loaded)

  protected def snapshot: Snapshot = current.get(readSnapshot(tableOptions))

  /** @throws NoDataException if there is nothing to read */
  protected def readSnapshot(options: CaseInsensitiveStringMap): Snapshot =
    SafetensorsTable.snapshot(options, tableSchema)

  protected def readOptions(options: CaseInsensitiveStringMap): ReadOptions =
    ReadOptions.of(options, SafetensorsTable.hadoopConf(options))

  override def covers(directory: Path): Boolean = current.covers(directory) || isBelowPaths(directory)

  override def renew(): Unit = current.drop()

  /** Whether the directory is one of the paths or below it, where a new one may be of a new partition. */
  private def isBelowPaths(directory: Path): Boolean = {
    val roots = Location.all(tableOptions, SafetensorsTable.hadoopConf(tableOptions)).toSet
    Iterator.iterate(directory)(_.getParent).takeWhile(_ != null).exists(roots)
  }

  override def equals(other: Any): Boolean = other match {
    case that: SafetensorsTable =>
      (this eq that) || getClass == that.getClass && tableSchema == that.schema() &&
        tableOptions == that.tableOptions && hasSnapshotOf(that)
    case _ => false
  }

  // One that cannot be read is not equal to any other: the scan that follows reports why.
  private def hasSnapshotOf(that: SafetensorsTable): Boolean =
    try {
      val isEqual = snapshot == that.snapshot
      if (isEqual) share(that)
      isEqual
    } catch { case _: InvalidRequestException | _: DataException | _: IOException => false }

  // Spark caches a table that it has loaded again. The table of a user's DataFrame equals that one, and is renewed with it.
  private def share(that: SafetensorsTable): Unit = SafetensorsTable.synchronized { that.current = current }

  override def hashCode: Int = tableOptions.hashCode

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    val options = optionsOfWrite(info.options)
    new SafetensorsWriteBuilder(info.schema, options, existing, SafetensorsTable.hadoopConf(options), like,
      ragged)
  }

  /** The columns that written rows must be like, also if they replace all others; empty if they may be any. */
  protected def like: Seq[ColumnRecord] = Nil

  /** The columns whose rows differ in their first dimension. That does not change if a write replaces the rows. */
  protected def ragged: Seq[String] = Nil

  // DELETE and TRUNCATE are supported so that they can say what to do instead.
  override def canDeleteWhere(predicates: Array[Predicate]): Boolean = refuseDelete()

  override def deleteWhere(predicates: Array[Predicate]): Unit = refuseDelete()

  override def truncateTable(): Boolean = refuseDelete()

  private def refuseDelete(): Nothing = throw new InvalidRequestException(
    s"Rows of ${name()} cannot be deleted: a dataset is only replaced as a whole. Use INSERT OVERWRITE with a query for the rows " +
      "to keep, for none with WHERE false, or delete the directory.")

  /** What to do with an existing dataset, unless the write overwrites it. */
  protected def existing: Existing = Existing.Keep

  protected def optionsOfWrite(callOptions: CaseInsensitiveStringMap): CaseInsensitiveStringMap =
    checked(callOptions)

  /** The options of the table and of the call. */
  protected def checked(callOptions: CaseInsensitiveStringMap): CaseInsensitiveStringMap = {
    SafetensorsTable.checkOptionNames(tableOptions)
    SafetensorsTable.checkOptionNames(callOptions)
    SafetensorsTable.merged(tableOptions, callOptions)
  }
}

private[safetensors] object SafetensorsTable {

  /** A table's options are for reads and writes, so it accepts the options of both. */
  def checkOptionNames(options: CaseInsensitiveStringMap): Unit =
    OptionSpec.checkNames(options.keySet.asScala.filter(isOption(_, options)),
      ReadOptions.all ++ WriteOptions.all)

  /** A catalog's table may have any properties. Those that are options occur a second time, with a prefix. */
  private def isOption(name: String, options: CaseInsensitiveStringMap): Boolean =
    !options.containsKey(TableCatalog.PROP_PROVIDER) || options.containsKey(TableCatalog.OPTION_PREFIX + name)

  /** The options of both. Those of `last` take precedence. */
  def merged(first: CaseInsensitiveStringMap, last: CaseInsensitiveStringMap): CaseInsensitiveStringMap = {
    val all = new util.HashMap[String, String](first.asCaseSensitiveMap)
    last.asCaseSensitiveMap.forEach { (name, value) =>
      all.keySet.removeIf(_.equalsIgnoreCase(name))
      all.put(name, value)
      ()
    }
    new CaseInsensitiveStringMap(all)
  }

  /** The options of a dataset's last write. Which columns are ragged, their kinds say: an append need not name all of them. */
  def optionsOfLast(manifest: Manifest): CaseInsensitiveStringMap =
    new CaseInsensitiveStringMap((manifest.options - WriteOptions.Ragged.name).asJava)

  def checkPartitioning(partitioning: Array[Transform]): Unit =
    if (partitioning.nonEmpty) throw new InvalidRequestException(
      "Safetensors datasets have neither partitions nor buckets: remove `partitionBy`, `clusterBy` and `bucketBy`, in SQL " +
        "PARTITIONED BY, CLUSTER BY and CLUSTERED BY. To lay out rows, use `repartition` or `sortWithinPartitions` before " +
        "the write, or write a dataset for each value.")

  /** @throws NoDataException if there is nothing to read */
  def snapshot(options: CaseInsensitiveStringMap, schema: StructType): Snapshot = {
    val conf = hadoopConf(options)
    Snapshot.of(Location.all(options, conf), ReadOptions.of(options, conf).listing, schema, conf)
  }

  /** Whether reads with these options find the same files. */
  private def readSameFiles(one: CaseInsensitiveStringMap, other: CaseInsensitiveStringMap): Boolean =
    optionsOfFiles(one) == optionsOfFiles(other)

  private def optionsOfFiles(options: CaseInsensitiveStringMap) =
    (Location.asGiven(options), ReadOptions.ofFiles.map(option => options.get(option.name)),
      hadoopOptions(options))

  /** The session's Hadoop configuration, with the options that are Hadoop settings. */
  def hadoopConf(options: CaseInsensitiveStringMap): Configuration =
    SparkSession.active.sessionState.newHadoopConfWithOptions(hadoopOptions(options))

  private def hadoopOptions(options: CaseInsensitiveStringMap): Map[String, String] =
    options.asCaseSensitiveMap.asScala.filter(_._1.contains('.')).toMap
}

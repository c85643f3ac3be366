package io.github.semyonsinchenko.safetensors

import java.util

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.dataset.{DatasetFiles, Location, OptionSpec}
import io.github.semyonsinchenko.safetensors.read.{ReadOptions, SafetensorsScanBuilder}
import io.github.semyonsinchenko.safetensors.write.{SafetensorsWriteBuilder, WriteOptions}

/** A dataset, a checkpoint or a single file, as a table that can be read and written. */
final class SafetensorsTable(tableSchema: StructType, tableOptions: CaseInsensitiveStringMap)
    extends Table
    with SupportsRead
    with SupportsWrite {

  // Spark's errors take it apart as an identifier.
  override def name(): String =
    s"safetensors.`${Location.asGiven(tableOptions).mkString(", ").replace("`", "``")}`"

  override def toString: String = name()

  override def schema(): StructType = tableSchema

  // Not any schema: Spark casts what is inserted to the table's columns, and names it by them.
  override def capabilities(): util.Set[TableCapability] = util.EnumSet.of(
    TableCapability.BATCH_READ,
    TableCapability.BATCH_WRITE,
    TableCapability.TRUNCATE)

  override def newScanBuilder(callOptions: CaseInsensitiveStringMap): ScanBuilder = {
    val options = merged(callOptions)
    SafetensorsTable.checkOptionNames(options)
    val conf = SafetensorsTable.hadoopConf(options)
    new SafetensorsScanBuilder(Location.all(options, conf).flatMap(DatasetFiles.of(_, conf)), tableSchema,
      conf)
  }

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    val options = merged(info.options)
    SafetensorsTable.checkOptionNames(options)
    new SafetensorsWriteBuilder(info.schema, options, SafetensorsTable.hadoopConf(options))
  }

  /** The table's properties, then the call's options. */
  private def merged(callOptions: CaseInsensitiveStringMap): CaseInsensitiveStringMap = {
    val all = new util.HashMap[String, String](tableOptions.asCaseSensitiveMap)
    callOptions.asCaseSensitiveMap.forEach { (name, value) =>
      all.keySet.removeIf(_.equalsIgnoreCase(name))
      all.put(name, value)
      ()
    }
    new CaseInsensitiveStringMap(all)
  }
}

private[safetensors] object SafetensorsTable {

  /** A table's options serve both ways, so that what either way knows is right. */
  def checkOptionNames(options: CaseInsensitiveStringMap): Unit =
    OptionSpec.checkNames(options, ReadOptions.all ++ WriteOptions.all)

  /** The session's Hadoop configuration, with the options that are Hadoop's own. */
  def hadoopConf(options: CaseInsensitiveStringMap): Configuration = {
    val own = options.asCaseSensitiveMap.asScala.filter(_._1.contains('.')).toMap
    SparkSession.active.sessionState.newHadoopConfWithOptions(own)
  }
}

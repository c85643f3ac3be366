package io.github.semyonsinchenko.safetensors

import java.io.IOException
import java.util

import org.apache.spark.sql.connector.catalog.{StagedTable, TableCapability}
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.Location
import io.github.semyonsinchenko.safetensors.write.commit.Existing

/**
 * A dataset that `AS SELECT` creates or replaces. The commit of the write makes it visible in one step, so Spark's commit of
 * the stage does nothing.
 *
 * @param existing what to do with an existing dataset
 */
private[safetensors] final class StagedDataset(
    schema: StructType,
    options: CaseInsensitiveStringMap,
    override protected val existing: Existing)
    extends SafetensorsTable(schema, options) with StagedTable {

  private val conf      = SafetensorsTable.hadoopConf(options)
  private val directory = Location.one(options, conf)
  private val fs        = directory.getFileSystem(conf)
  private val isNew     = !fs.exists(directory)
  private var written   = false

  override def capabilities(): util.Set[TableCapability] = PathTable.anySchema(super.capabilities())

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    written = true
    super.newWriteBuilder(info)
  }

  override def commitStagedChanges(): Unit = if (!written) throw StagedDataset.withoutRows

  /** Deletes the directory if the write created it. The write has already deleted its own files. */
  override def abortStagedChanges(): Unit =
    try if (isNew && fs.exists(directory) && fs.listStatus(directory).isEmpty) {
        fs.delete(directory, false); ()
      }
    catch {
      case e: IOException =>
        LoggerFactory.getLogger(getClass).warn(s"Could not delete the empty directory $directory.", e)
    }
}

private[safetensors] object StagedDataset {

  def withoutRows = new InvalidRequestException(
    "A table by path cannot be created without rows. Use AS SELECT with an option `batch_size` or `name_col`, or create a " +
      "table in another catalog: CREATE TABLE name (...) USING safetensors LOCATION 'path'.")
}

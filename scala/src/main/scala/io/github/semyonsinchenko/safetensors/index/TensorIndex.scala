package io.github.semyonsinchenko.safetensors.index

import java.io.{FileNotFoundException, IOException}

import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.ParquetWriter
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.hadoop.util.HadoopOutputFile

import io.github.semyonsinchenko.safetensors.common.{FormatVersion, InvalidRequestException}
import io.github.semyonsinchenko.safetensors.storage.StorageException

/**
 * Files of a dataset's index: where its tensors are, sorted by key as UTF-8 bytes. The footer names the commit that made the
 * file.
 */
object TensorIndex {

  // Spark's look-up reads the footer, where the pages of one row group lie, and one page of each column: small ones keep it to
  // kilobytes. A bloom filter would be larger than the page that it may save, as the keys are sorted.
  private val PageBytes = 16 << 10
  private val PageRows  = 250

  // Many of Parquet's readers read no less than a row group. With the footer, which has so many bytes for each of them, that is
  // least where both are of about the same length. Parquet counts the pages that are being filled as well, uncompressed.
  private val BytesInFooter = 460L
  private val OpenPages     = 32L << 10

  private def rowGroupBytes(bytes: Long): Long =
    OpenPages + math.sqrt(BytesInFooter.toDouble * bytes).toLong

  /**
   * Writes entries, which come in order, to a new file.
   *
   * @param bytes about how many the file will have
   */
  def write(
      path: Path,
      commitId: String,
      entries: Iterator[IndexEntry],
      bytes: Long,
      conf: Configuration): Unit =
    StorageException.locating(path) {
      Using.resource(writer(path, commitId, bytes, conf))(writer => entries.foreach(writer.write))
    }

  private def writer(
      path: Path,
      commitId: String,
      bytes: Long,
      conf: Configuration): ParquetWriter[IndexEntry] =
    new Writer(path, conf)
      .withConf(conf)
      .withCompressionCodec(CompressionCodecName.ZSTD)
      .withRowGroupSize(rowGroupBytes(bytes))
      .withPageSize(PageBytes)
      .withPageRowCountLimit(PageRows)
      .withDictionaryEncoding("tensor_key", false)
      // The least and the greatest of each page stay in memory until the end, and of other columns they tell nothing.
      .withStatisticsEnabled(false)
      .withStatisticsEnabled("tensor_key", true)
      .withSizeStatisticsEnabled(false)
      .withExtraMetaData(Map(
          IndexSupport.CommitKey  -> commitId,
          IndexSupport.VersionKey -> FormatVersion.Current.toString).asJava)
      .build()

  private final class Writer(path: Path, conf: Configuration)
      extends ParquetWriter.Builder[IndexEntry, Writer](HadoopOutputFile.fromPath(path, conf)) {
    override protected def self(): Writer                                     = this
    override protected def getWriteSupport(conf: Configuration): IndexSupport = new IndexSupport
  }

  /** Whether one of the parts is there, perhaps of another commit. */
  def exists(directory: Path, parts: Seq[IndexPart], conf: Configuration): Boolean =
    parts.exists(part => directory.getFileSystem(conf).exists(new Path(directory, part.file)))

  /**
   * The part, opened; none if it is not there, or its file is of another commit.
   *
   * @throws InvalidRequestException if it cannot be read, or is newer than this connector
   */
  def open(directory: Path, part: IndexPart, conf: Configuration): Option[IndexReader] = {
    val path = new Path(directory, part.file)
    reading(path) {
      val index = new IndexReader(path, conf)
      val isPart =
        try index.commitId.contains(part.commitId)
        catch { case NonFatal(e) => index.close(); throw e }
      if (isPart) Some(index) else { index.close(); None }
    }
  }

  /**
   * What `use` makes of the entries of these keys. None if the part is not there, or its file is of another commit.
   *
   * @throws InvalidRequestException if it cannot be read, or is newer than this connector
   */
  def find[A](directory: Path, part: IndexPart, keys: Keys, conf: Configuration)(
      use: Iterator[IndexEntry] => A): Option[A] =
    open(directory, part, conf).flatMap(index =>
      reading(new Path(directory, part.file))(Some(Using.resource(index)(index => use(index.entries(keys))))))

  private def reading[A](path: Path)(read: => Option[A]): Option[A] =
    try read
    catch {
      case _: FileNotFoundException => None
      case e @ (_: IOException | _: RuntimeException) => throw new InvalidRequestException(
          s"$path cannot be read: ${e.getMessage}. Delete it, and write with `generate_index` to make a new one.",
          Some(e))
    }
}

package io.github.semyonsinchenko.safetensors.index

import java.io.FileNotFoundException

import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.ParquetWriter
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.hadoop.util.HadoopOutputFile

import io.github.semyonsinchenko.safetensors.common.FormatVersion
import io.github.semyonsinchenko.safetensors.storage.StorageException

/**
 * The files of a dataset's index, with the locations of its tensors sorted by key as UTF-8 bytes. The footer has the ID
 * of the commit that created the file.
 */
object TensorIndex {

  // A look-up in Spark reads the footer, the page locations of one row group, and one page per column. Small pages
  // limit this to kilobytes. The keys are sorted, so a bloom filter would be larger than the page read that it may
  // save.
  private val PageBytes = 16 << 10
  private val PageRows  = 250

  // Many Parquet readers read at least a whole row group and the footer, which has this many bytes per row group. The
  // sum is minimal if both have about the same length. Parquet also counts the open pages, uncompressed, in the row
  // group size.
  private val BytesInFooter = 460L
  private val OpenPages     = 32L << 10

  private def rowGroupBytes(bytes: Long): Long =
    OpenPages + math.sqrt(BytesInFooter.toDouble * bytes).toLong

  /**
   * Writes sorted entries to a new file.
   *
   * @param bytes the approximate length of the file
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
      // Statistics of each page stay in memory until the end, and are useless for other columns.
      .withStatisticsEnabled(false)
      .withStatisticsEnabled("tensor_key", true)
      .withSizeStatisticsEnabled(false)
      .withExtraMetaData(Map(
          IndexSupport.CommitKey  -> commitId,
          IndexSupport.VersionKey -> FormatVersion.Index.toString).asJava)
      .build()

  private final class Writer(path: Path, conf: Configuration)
      extends ParquetWriter.Builder[IndexEntry, Writer](HadoopOutputFile.fromPath(path, conf)) {
    override protected def self(): Writer                                     = this
    override protected def getWriteSupport(conf: Configuration): IndexSupport = new IndexSupport
  }

  /** Whether the file of one of the parts exists, possibly from another commit. */
  def exists(directory: Path, parts: Seq[IndexPart], conf: Configuration): Boolean =
    parts.exists(part => directory.getFileSystem(conf).exists(new Path(directory, part.file)))

  /**
   * Opens the part. None if its file does not exist or is from another commit.
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
   * Applies `use` to the entries of these keys. None if the file of the part does not exist or is from another commit.
   *
   * @throws InvalidRequestException if it cannot be read, or is newer than this connector
   */
  def find[A](directory: Path, part: IndexPart, keys: Keys, conf: Configuration)(
      use: Iterator[IndexEntry] => A): Option[A] =
    open(directory, part, conf).flatMap(index =>
      reading(new Path(directory, part.file))(Some(Using.resource(index)(index => use(index.entries(keys))))))

  private def reading[A](path: Path)(read: => Option[A]): Option[A] =
    try IndexReader.refusing(path)(read)
    catch { case _: FileNotFoundException => None }
}

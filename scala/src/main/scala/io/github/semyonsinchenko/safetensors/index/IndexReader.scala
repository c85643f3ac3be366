package io.github.semyonsinchenko.safetensors.index

import java.io.{FileNotFoundException, IOException}
import java.nio.ByteBuffer
import java.util.stream.IntStream

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnPath}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.internal.filter2.columnindex.RowRanges

import io.github.semyonsinchenko.safetensors.common.{FormatVersion, InvalidRequestException}

/**
 * An open index file. A look-up uses the smallest and largest key of each page to read only pages that may have its
 * keys. It does not use Parquet filters, which take time for every pair of key and row.
 */
final class IndexReader private[index] (path: Path, conf: Configuration) extends AutoCloseable {
  import IndexReader._

  // With its default options, Parquet loads a new Hadoop configuration, which takes as long as a look-up.
  private val input = HadoopInputFile.fromPath(path, conf)
  private val file =
    ParquetFileReader.open(input, HadoopReadOptions.builder(conf).usePageChecksumVerification(true).build())
  private val metadata = file.getFileMetaData

  /**
   * The commit that created the file.
   *
   * @throws UnsupportedVersionException if it is newer than this connector
   */
  def commitId: Option[String] = {
    val version = inFooter(IndexSupport.VersionKey).getOrElse("1.0")
    FormatVersion.parse(version).getOrElse(throw new IllegalArgumentException(
        s"its format version is `$version`, expected MAJOR.MINOR")).checkReadable(path,
      Seq(FormatVersion.Index))
    inFooter(IndexSupport.CommitKey)
  }

  private def inFooter(key: String): Option[String] = Option(metadata.getKeyValueMetaData.get(key))

  /** The number of entries. */
  def count: Long = file.getRecordCount

  /** The length of the file in bytes. */
  def bytes: Long = input.getLength

  /** The entries of these keys, sorted. A damaged index is an `InvalidRequestException`, also while they are read. */
  def entries(keys: Keys): Iterator[IndexEntry] = {
    val found = refusing(path)(read(keys))
    new Iterator[IndexEntry] {
      override def hasNext: Boolean   = refusing(path)(found.hasNext)
      override def next(): IndexEntry = refusing(path)(found.next())
    }
  }

  private def read(keys: Keys): Iterator[IndexEntry] =
    file.getRowGroups.asScala.iterator.zipWithIndex.flatMap { case (group, number) =>
      entriesOf(group, number, keysIn(group, keys))
    }

  /** The keys that a row group may have. */
  private def keysIn(group: BlockMetaData, keys: Keys): Keys = {
    val statistics = group.getColumns.asScala.find(_.getPath == KeyColumn).map(_.getStatistics)
    // Parquet has no statistics for long keys.
    statistics.filter(known => known != null && known.hasNonNullValue).fold(keys)(known =>
      keys.between(known.getMinBytes, known.getMaxBytes))
  }

  private def entriesOf(group: BlockMetaData, number: Int, keys: Keys): Iterator[IndexEntry] = {
    val rows = if (keys.isEmpty) RowRanges.EMPTY else rowsOf(group, number, keys)
    if (rows.rowCount == 0) Iterator.empty
    else new IndexRows(file.readFilteredRowGroup(number, rows), metadata).entries(keys)
  }

  /** The rows of the pages that may have the keys. */
  private def rowsOf(group: BlockMetaData, number: Int, keys: Keys): RowRanges = {
    val pages = file.getColumnIndexStore(number)
    Option(pages.getColumnIndex(KeyColumn)).fold(RowRanges.createSingle(group.getRowCount)) { index =>
      val (least, greatest) = (index.getMinValues, index.getMaxValues)
      val wanted = IntStream.range(0, least.size).filter(page =>
        keys.overlap(bytes(least.get(page)), bytes(greatest.get(page))))
      RowRanges.create(group.getRowCount, wanted.iterator, pages.getOffsetIndex(KeyColumn))
    }
  }

  private def bytes(value: ByteBuffer): Array[Byte] = {
    val copy = new Array[Byte](value.remaining)
    value.duplicate().get(copy)
    copy
  }

  override def close(): Unit = file.close()
}

private[index] object IndexReader {
  private val KeyColumn = ColumnPath.get("tensor_key")

  /** @throws InvalidRequestException instead of what Parquet throws of a damaged file */
  private[index] def refusing[A](path: Path)(read: => A): A =
    try read
    catch {
      case e: FileNotFoundException => throw e
      case e @ (_: IOException | _: RuntimeException) => throw new InvalidRequestException(
          s"$path cannot be read: ${e.getMessage}. Delete it, and write with `generate_index` to make a new one.",
          Some(e))
    }
}

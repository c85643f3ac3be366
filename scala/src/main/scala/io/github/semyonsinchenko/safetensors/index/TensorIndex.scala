package io.github.semyonsinchenko.safetensors.index

import java.io.{FileNotFoundException, IOException}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.example.data.Group
import org.apache.parquet.filter2.compat.FilterCompat
import org.apache.parquet.hadoop.{ParquetFileReader, ParquetReader, ParquetWriter}
import org.apache.parquet.hadoop.api.InitContext
import org.apache.parquet.hadoop.api.ReadSupport.ReadContext
import org.apache.parquet.hadoop.example.GroupReadSupport
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.hadoop.util.{HadoopInputFile, HadoopOutputFile}

import io.github.semyonsinchenko.safetensors.common.{FormatVersion, InvalidRequestException}
import io.github.semyonsinchenko.safetensors.storage.StorageException

/**
 * `_tensor_index.parquet`: every tensor of a dataset, sorted by key as UTF-8 bytes. Its footer names the commit that it was
 * made in; where the manifest's is another, it is out of date and counts for nothing.
 */
object TensorIndex {

  val FileName = "_tensor_index.parquet"

  private val CommitKey  = "safetensors.commit_id"
  private val VersionKey = "safetensors.format_version"

  // Spark's look-up reads the footer, where the pages of one row group lie, and one page of each column: small ones keep it to
  // kilobytes. A bloom filter would be larger than the page that it may save, as the keys are sorted.
  private val PageBytes = 16 << 10
  private val PageRows  = 1000

  // Many of Parquet's readers read no less than a row group. With the footer, which has so many bytes for each of them, that is
  // least where both are of about the same length. Parquet counts the pages that are being filled as well, uncompressed.
  private val BytesInFooter = 460L
  private val OpenPages     = 64L << 10

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
      .withExtraMetaData(Map(CommitKey -> commitId, VersionKey -> FormatVersion.Current.toString).asJava)
      .build()

  private final class Writer(path: Path, conf: Configuration)
      extends ParquetWriter.Builder[IndexEntry, Writer](HadoopOutputFile.fromPath(path, conf)) {
    override protected def self(): Writer                                     = this
    override protected def getWriteSupport(conf: Configuration): IndexSupport = new IndexSupport
  }

  /** Whether the directory has an index, be it out of date. */
  def exists(directory: Path, conf: Configuration): Boolean = {
    val path = new Path(directory, FileName)
    path.getFileSystem(conf).exists(path)
  }

  /** The commit that the directory's index was made in; none where there is no index. */
  def commitId(directory: Path, conf: Configuration): Option[String] =
    try {
      val file = HadoopInputFile.fromPath(new Path(directory, FileName), conf)
      Using.resource(ParquetFileReader.open(file)) { reader =>
        val footer = reader.getFooter.getFileMetaData.getKeyValueMetaData
        commitOf(file.getPath, key => Option(footer.get(key)))
      }
    } catch { case _: FileNotFoundException => None }

  /**
   * The commit that an index was made in.
   *
   * @param footer the values that the footer has by key
   * @throws UnsupportedVersionException if the index is newer than this connector
   */
  private def commitOf(path: Path, footer: String => Option[String]): Option[String] = {
    // The first indexes named no version.
    val version = footer(VersionKey).getOrElse("1.0")
    FormatVersion.parse(version)
      .getOrElse(throw unreadable(path, s"its format version is `$version`, expected MAJOR.MINOR"))
      .checkReadable(path)
    footer(CommitKey)
  }

  private def unreadable(path: Path, detail: String, cause: Option[Throwable] = None) =
    new InvalidRequestException(
      s"$path cannot be read: $detail. Delete it, and write with `generate_index` to make a new one.", cause)

  /** How many bytes the directory's index has. */
  def length(directory: Path, conf: Configuration): Long =
    directory.getFileSystem(conf).getFileStatus(new Path(directory, FileName)).getLen

  /** All entries of the directory's index, in order; close it when done. */
  def read(directory: Path, conf: Configuration): CloseableEntries =
    open(new Path(directory, FileName), new GroupReadSupport, FilterCompat.NOOP, conf)

  /**
   * What `use` makes of the entries of these keys, and perhaps of others. None if the index was made in another commit.
   *
   * @throws InvalidRequestException if it cannot be read
   */
  def find[A](path: Path, commitId: String, keys: Option[Keys], conf: Configuration)(
      use: Iterator[IndexEntry] => A): Option[A] =
    try {
      var madeIn = Option.empty[String]
      val support = new GroupReadSupport {
        override def init(context: InitContext): ReadContext = {
          val footer = context.getKeyValueMetadata
          madeIn = commitOf(path, key => Option(footer.get(key)).map(_.iterator.next()))
          super.init(context)
        }
      }
      Using.resource(open(path, support, keys.fold(FilterCompat.NOOP)(IndexFilter.of), conf)) { entries =>
        // The reader looks at the footer when it is first asked for an entry.
        entries.hasNext
        Option.when(madeIn.contains(commitId))(use(entries))
      }
    } catch {
      case _: FileNotFoundException => None
      case e @ (_: IOException | _: RuntimeException) => throw unreadable(path, e.getMessage, Some(e))
    }

  private def open(
      path: Path,
      support: GroupReadSupport,
      filter: FilterCompat.Filter,
      conf: Configuration) = {
    val reader = new Reader(HadoopInputFile.fromPath(path, conf), support).withFilter(filter).build()
    new CloseableEntries(
      Iterator.continually(reader.read()).takeWhile(_ != null).map(entry), () => reader.close())
  }

  // Parquet's own builder for a path begins with a new Hadoop configuration, which takes as long as the look-up itself.
  private final class Reader(file: HadoopInputFile, support: GroupReadSupport)
      extends ParquetReader.Builder[Group](file) {
    override protected def getReadSupport: GroupReadSupport = support
  }

  private def entry(group: Group): IndexEntry = {
    val shape = group.getGroup("shape", 0)
    val dims  = (0 until shape.getFieldRepetitionCount(0)).map(i => shape.getGroup(0, i).getInteger(0, 0))
    IndexEntry(
      group.getString("tensor_key", 0),
      group.getString("file_name", 0),
      dims,
      group.getString("dtype", 0),
      group.getLong("data_start", 0),
      group.getLong("data_end", 0)
    )
  }
}

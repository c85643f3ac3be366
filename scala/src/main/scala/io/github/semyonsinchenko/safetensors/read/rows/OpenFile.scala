package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.hadoop.conf.Configuration

import io.github.semyonsinchenko.safetensors.dataset.{DataFile, Located}
import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header, RepeatedNames, TensorInfo}
import io.github.semyonsinchenko.safetensors.read.columns.{ColumnNames, RowColumn, StoredColumns}
import io.github.semyonsinchenko.safetensors.storage.{IgnoredFiles, Sources, UnreadableFileException}

/**
 * A file or a split of a file that a task reads.
 *
 * @param located what an index says about its tensors
 * @param span    the split. Not used if an index lists the tensors.
 */
private[read] final case class FilePart(
    file: DataFile,
    located: Located = Located.Somewhere,
    span: Span = Span.All) {

  /** The maximum number of bytes that a task reads. Each split of a file reads the header. */
  def size: Long = located match {
    case Located.At(tensors) => tensors.iterator.map(_.size).sum
    case Located.Somewhere =>
      val header = if (span.begin == 0) 0L else headerBytes
      math.min(span.end, file.length) - span.begin + header
  }

  /** The size of the header. 0 if there is no manifest. */
  def headerBytes: Long = file.shard.fold(0L)(_.headerBytes)
}

/** The state that the files of a task share. */
private[read] final class TaskState(
    val names: RepeatedNames,
    val caseSensitive: Boolean,
    val ignored: IgnoredFiles,
    val conf: Configuration) {
  val metrics = new ReadCounters

  /** Holds the rows of the current batch. */
  var memory = new RowMemory
}

/** A file of a task. It is opened, and its header is read, only when needed. */
private[read] final class OpenFile(part: FilePart, task: TaskState) extends AutoCloseable {

  private var opened: ByteSource = _

  def file: DataFile = part.file

  /** The file with its modification time, which a manifest does not have. */
  lazy val listed: DataFile =
    if (file.isListed) file
    else file.copy(modified = Some(Sources.status(file, task.conf).getModificationTime))

  def metrics: ReadCounters = task.metrics

  def memory: RowMemory = task.memory

  def source: ByteSource = {
    if (opened == null) {
      opened = Sources.open(file, task.conf)
      metrics.files += 1
    }
    opened
  }

  lazy val header: Header = {
    val header = Sources.header(source, task.names)
    metrics.headerBytes += header.dataStart
    file.shard.foreach(ShardCheck(file, header, _))
    ShardCheck.hasListed(file, header)
    header
  }

  /** The tensors of this part. If an index lists them, the header is not read. */
  def tensors: IndexedSeq[TensorInfo] = part.located match {
    case Located.At(tensors)                                                => tensors
    case Located.Somewhere if part.span == Span.All && file.tensors.isEmpty => header.tensors
    case Located.Somewhere =>
      header.tensors.filter(tensor => part.span.contains(start(tensor)) && isData(tensor))
  }

  /** The samples of this part, as first (inclusive) and end (exclusive), of the `count` samples in the file. */
  def samples(count: Long): (Long, Long) = part.span.rows(count, file.length)

  /** The offset of a tensor in the file. It must be one of `tensors`. */
  def start(tensor: TensorInfo): Long = part.located match {
    case Located.At(_)     => tensor.begin
    case Located.Somewhere => header.dataStart + tensor.begin
  }

  /**
   * The tensor of a column. None if the file does not have it and the column is nullable.
   *
   * @throws UnreadableFileException if the file does not have it and the column is not nullable
   */
  def tensor(column: RowColumn.OfTensor): Option[TensorInfo] = {
    val found = header.tensor(column.name).filter(isData).orElse(similar(column.name))
    if (found.isEmpty && !column.nullable) throw new UnreadableFileException(
      s"${file.path} has no tensor `${column.name}`, which the schema requires. Make the column nullable " +
        "to read null there.")
    found
  }

  /** The tensor with this name, if it belongs to the table. */
  def tensorNamed(name: String): Option[TensorInfo] = header.tensor(name).filter(isData)

  /** How the columns are stored. */
  lazy val stored = new StoredColumns(file, header)

  /** The tensor whose name matches except for case, if `spark.sql.caseSensitive` is false. */
  private def similar(name: String): Option[TensorInfo] =
    if (task.caseSensitive) None
    else byFoldedName.getOrElse(ColumnNames.folded(name), Vector.empty) match {
      case found if found.size < 2 => found.headOption
      case several => throw new UnreadableFileException(
          s"${file.path} has several tensors for the column `$name`: ${several.map(t =>
              s"`${t.name}`").mkString(", ")}. Name one of " +
            "them exactly, or set `spark.sql.caseSensitive` to `true`.")
    }

  private lazy val byFoldedName =
    header.tensors.filter(isData).groupBy(tensor => ColumnNames.folded(tensor.name))

  /** Whether the tensor belongs to the table. A checkpoint has only the tensors that its index lists. */
  private def isData(tensor: TensorInfo): Boolean = file.tensors.forall(_(tensor.name))

  override def close(): Unit = if (opened != null) opened.close()
}

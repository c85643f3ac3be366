package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.hadoop.conf.Configuration

import io.github.semyonsinchenko.safetensors.dataset.{DataFile, Located}
import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header, RepeatedNames, TensorInfo}
import io.github.semyonsinchenko.safetensors.read.columns.{ColumnNames, RowColumn}
import io.github.semyonsinchenko.safetensors.storage.{IgnoredFiles, Sources, UnreadableFileException}

/**
 * A file, or a split of one, that a task reads.
 *
 * @param located what an index says about its tensors
 * @param span    the split; an index names the tensors of a split itself
 */
private[read] final case class FilePart(
    file: DataFile,
    located: Located = Located.Somewhere,
    span: Span = Span.All) {

  /** How many bytes a task reads of it, at most. Each split of a file reads the header. */
  def size: Long = located match {
    case Located.At(tensors) => tensors.iterator.map(_.size).sum
    case Located.Somewhere =>
      val header = if (span.begin == 0) 0L else headerBytes
      math.min(span.end, file.length) - span.begin + header
  }

  /** The size of the header; 0 where no manifest tells. */
  def headerBytes: Long = file.shard.fold(0L)(_.headerBytes)
}

/** What the files of a task share. */
private[read] final class TaskState(
    val names: RepeatedNames,
    val caseSensitive: Boolean,
    val ignored: IgnoredFiles,
    val conf: Configuration) {
  val metrics = new ReadCounters

  /** Where the rows of the current batch are made. */
  var memory = new RowMemory
}

/** A file of a task. It is opened, and its header read, when something is asked for that takes it. */
private[read] final class OpenFile(part: FilePart, task: TaskState) extends AutoCloseable {

  private var opened: ByteSource = _

  def file: DataFile = part.file

  /** The same, with what only a file system knows. */
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

  /** The tensors of this part. If an index names them, the header is not read. */
  def tensors: IndexedSeq[TensorInfo] = part.located match {
    case Located.At(tensors)                                                => tensors
    case Located.Somewhere if part.span == Span.All && file.tensors.isEmpty => header.tensors
    case Located.Somewhere =>
      header.tensors.filter(tensor => part.span.contains(start(tensor)) && isData(tensor))
  }

  /** Which of its `count` samples belong to this part: the first, and the one after the last. */
  def samples(count: Long): (Long, Long) = part.span.rows(count, file.length)

  /** Where one of the `tensors` begins in the file. */
  def start(tensor: TensorInfo): Long = part.located match {
    case Located.At(_)     => tensor.begin
    case Located.Somewhere => header.dataStart + tensor.begin
  }

  /**
   * The tensor of a column; none where the file has none, which is right of a nullable column.
   *
   * @throws UnreadableFileException if the file lacks it and must not
   */
  def tensor(column: RowColumn.Tensor): Option[TensorInfo] = {
    val found = header.tensor(column.name).filter(isData).orElse(similar(column.name))
    if (found.isEmpty && !column.nullable) throw new UnreadableFileException(
      s"${file.path} has no tensor `${column.name}`, which the schema requires. Make the column nullable " +
        "to read null there.")
    found
  }

  /** The tensor that Spark takes for the column, if `spark.sql.caseSensitive` is false. */
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

  /** Whether the tensor is one of the table. A checkpoint consists of those that its index names. */
  private def isData(tensor: TensorInfo): Boolean = file.tensors.forall(_(tensor.name))

  override def close(): Unit = if (opened != null) opened.close()
}

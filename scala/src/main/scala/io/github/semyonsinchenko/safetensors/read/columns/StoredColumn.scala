package io.github.semyonsinchenko.safetensors.read.columns

import io.github.semyonsinchenko.safetensors.dataset.{ColumnKind, ColumnRecord, DataFile}
import io.github.semyonsinchenko.safetensors.format.{Dtype, Header, TensorInfo}
import io.github.semyonsinchenko.safetensors.storage.{FileFault, UnreadableFileException}

/**
 * How the rows of a column are stored.
 *
 * @param dtype   the dtype of its elements
 * @param shape   the shape of a row; if the kind has offsets, that of a value
 * @param written the Spark type that was written, if the manifest names it
 */
private[read] final case class StoredColumn(
    kind: ColumnKind,
    dtype: Dtype,
    shape: Seq[Long],
    written: Option[String] = None) {

  /** The number of dimensions of a row. */
  def dims: Int = shape.size + (if (kind.hasOffsets) 1 else 0)

  /** For messages. */
  def show: String = {
    val ofRow = (if (kind.hasOffsets) Seq("n") else Nil) ++ shape.map(java.lang.Long.toUnsignedString)
    s"${kind.name}, ${dtype.name} of shape ${ofRow.mkString("[", ", ", "]")} by row"
  }
}

private[read] object StoredColumn {

  /** None if the manifest does not state the dtype or the shape, as older versions allowed rows to differ. */
  def of(record: ColumnRecord): Option[StoredColumn] =
    for (name <- record.dtype; dtype <- Dtype.of(name); shape <- record.shape)
      yield StoredColumn(record.kind, dtype, shape.map(_.toLong), record.sparkType)
}

/**
 * How a file has its columns.
 *
 * @throws UnreadableFileException if the file has no manifest, and its `__metadata__` does not name kinds as it should
 */
private[read] final class StoredColumns(file: DataFile, header: Header) {

  private val records = file.shard.toVector.flatMap(_.columns)
  private val places  = records.map(_.name).zipWithIndex.toMap
  private val byName  = records.map(column => column.name -> column).toMap

  private val kinds: Map[String, ColumnKind] =
    if (file.shard.isDefined) byName.map { case (name, column) => name -> column.kind }
    else header.metadata.get(ColumnKind.MetadataName).fold(Map.empty[String, ColumnKind])(text =>
      ColumnKind.parse(text).fold(detail => throw malformed(detail), identity))

  private val offsets = kinds.iterator.collect {
    case (name, kind) if kind.hasOffsets => ColumnKind.offsetsOf(name)
  }.toSet

  /** Whether a tensor has the offsets of a column, and is not a column. */
  def isOffsets(name: String): Boolean = offsets(name)

  /** The position of a column in the order of writing, which a manifest records. */
  def place(name: String): Int = places.getOrElse(name, places.size)

  def apply(tensor: TensorInfo): StoredColumn = StoredColumn(
    kinds.getOrElse(tensor.name, ColumnKind.Fixed),
    tensor.dtype,
    tensor.shape.drop(1),
    byName.get(tensor.name).flatMap(_.sparkType))

  private def malformed(detail: String) = new UnreadableFileException(
    s"${file.path}: `${ColumnKind.MetadataName}` in the `__metadata__` does not name the kinds of the columns: $detail. Write the " +
      "file again, or read its tensors with the option `layout=wide` or `layout=long`.",
    fault = FileFault.Corrupt
  )
}

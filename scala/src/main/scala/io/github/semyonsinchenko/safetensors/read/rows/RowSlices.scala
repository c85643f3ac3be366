package io.github.semyonsinchenko.safetensors.read.rows

import io.github.semyonsinchenko.safetensors.dataset.ColumnKind
import io.github.semyonsinchenko.safetensors.format.{Dtype, TensorInfo}
import io.github.semyonsinchenko.safetensors.storage.{FileFault, UnreadableFileException}

/**
 * Where the rows of a column are in a file. Rows are requested in ascending order.
 *
 * @param entries how many equal entries the tensor has
 */
private[rows] sealed abstract class RowSlices(
    val file: OpenFile,
    val tensor: TensorInfo,
    entries: Long) {

  private val begin     = file.start(tensor)
  private val entrySize = if (entries == 0) 0L else tensor.size / entries

  // With elements smaller than a byte, an entry may start or end within a byte.
  if (entrySize * entries != tensor.size)
    throw RowSlices.unfit(file, tensor, s"has samples of ${tensor.dtype} that are not whole bytes")

  /** The number of rows, with padding. */
  def count: Long

  /**
   * Prepares for the rows from `first` (inclusive) to `end` (exclusive).
   *
   * @param samples the number of rows without padding
   */
  def select(first: Long, end: Long, samples: Long): Unit = selectedEnd = end

  private var selectedEnd = 0L

  /** The end of the selected rows. */
  final def end: Long = selectedEnd

  /** The first entry of a row. */
  protected def entry(row: Long): Long

  /** The number of entries of a row. */
  def length(row: Long): Long

  def shape(row: Long): IndexedSeq[Long]

  /** The offset in the file of a row's first byte. */
  final def start(row: Long): Long = begin + entry(row) * entrySize

  /** The size of a row in bytes. */
  final def size(row: Long): Long = length(row) * entrySize
}

private[rows] object RowSlices {

  /** @throws UnreadableFileException if the tensor has no rows, or lacks its offsets */
  def of(file: OpenFile, tensor: TensorInfo, kind: ColumnKind): RowSlices =
    if (kind.hasOffsets) new RaggedSlices(file, tensor, kind) else new FixedSlices(file, tensor)

  /** The first dimension. */
  def first(file: OpenFile, tensor: TensorInfo): Long = tensor.shape.headOption.filter(_ >= 0).getOrElse(
    throw unfit(file, tensor, "has no first dimension that counts samples"))

  def unfit(file: OpenFile, tensor: TensorInfo, why: String) = new UnreadableFileException(
    s"${file.file.path}: tensor `${tensor.name}` of shape ${tensor.shape.map(
        java.lang.Long.toUnsignedString).mkString("[", ", ", "]")} $why, " +
      "as the layout `rows` needs. Leave it out of the schema, or read with `layout=wide` or `layout=long`.")
}

/** A tensor that is one row. */
private final class WholeTensor(file: OpenFile, tensor: TensorInfo)
    extends RowSlices(file, tensor, 1) {
  override def count: Long                        = 1
  override protected def entry(row: Long): Long   = 0
  override def length(row: Long): Long            = 1
  override def shape(row: Long): IndexedSeq[Long] = tensor.shape
}

/** Each entry of the first dimension is a row. */
private final class FixedSlices(file: OpenFile, tensor: TensorInfo)
    extends RowSlices(file, tensor, RowSlices.first(file, tensor)) {
  private val rowShape                            = tensor.shape.drop(1)
  override val count: Long                        = RowSlices.first(file, tensor)
  override protected def entry(row: Long): Long   = row
  override def length(row: Long): Long            = 1
  override def shape(row: Long): IndexedSeq[Long] = rowShape
}

/** The rows have any number of entries. A tensor of offsets says where each begins. */
private final class RaggedSlices(file: OpenFile, tensor: TensorInfo, kind: ColumnKind)
    extends RowSlices(file, tensor, RowSlices.first(file, tensor)) {

  private val entries    = RowSlices.first(file, tensor)
  private val valueShape = tensor.shape.drop(1)

  private val offsets = file.header.tensor(ColumnKind.offsetsOf(tensor.name)).getOrElse(
    damaged(s"has no tensor `${ColumnKind.offsetsOf(tensor.name)}`"))

  if (offsets.dtype != Dtype.I64 || offsets.shape.size != 1 || offsets.shape.head < 1)
    damaged(
      s"has offsets of ${offsets.dtype} and shape ${offsets.shape.mkString("[", ", ", "]")}, expected I64 and one dimension of at " +
        "least 1")

  override val count: Long = offsets.shape.head - 1

  private val blocks   = new ElementBlocks(file, offsets, 8)
  private var samples  = 0L
  private var row      = -1L
  private var rowBegin = 0L
  private var rowEnd   = 0L

  override def select(first: Long, end: Long, samples: Long): Unit = {
    super.select(first, end, samples)
    this.samples = samples
    if (first == 0 && offset(0) != 0) damaged(s"has offsets that begin with ${offset(0)}, expected 0")
    // The offsets of a shard without rows are looked at by nobody else.
    if (samples == 0 && end == 0 && offset(0) != entries) endsEarly(offset(0))
  }

  override protected def entry(row: Long): Long = {
    look(row)
    rowBegin
  }

  override def length(row: Long): Long = {
    look(row)
    rowEnd - rowBegin
  }

  override def shape(row: Long): IndexedSeq[Long] = length(row) +: valueShape

  private def look(row: Long): Unit = if (row != this.row) {
    val from = offset(row)
    val to   = offset(row + 1)
    if (from < 0 || to < from || to > entries) damaged(
      s"has offsets $from and $to for row $row, expected ascending numbers up to its $entries values")
    // Padding rows are empty, so that the last row ends where the values end.
    if (row + 1 == samples && to != entries) endsEarly(to)
    this.row = row
    rowBegin = from
    rowEnd = to
  }

  private def offset(index: Long): Long = blocks.long(index, end + 1)

  private def endsEarly(last: Long) =
    damaged(s"has offsets whose last one is $last, expected its number of values, $entries")

  private def damaged(what: String): Nothing = throw new UnreadableFileException(
    s"${file.file.path}: the ${kind.name} column `${tensor.name}` $what. The file is damaged: restore it, or write the " +
      "dataset again.",
    fault = FileFault.Corrupt
  )
}

package io.github.semyonsinchenko.safetensors.index

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.parquet.column.ColumnReader
import org.apache.parquet.column.impl.ColumnReadStoreImpl
import org.apache.parquet.column.page.PageReadStore
import org.apache.parquet.example.DummyRecordConverter
import org.apache.parquet.hadoop.metadata.FileMetaData
import org.apache.parquet.io.api.Binary

/** Rows of a row group as entries. Of rows that are not wanted, only the key is decoded. */
private[index] final class IndexRows(pages: PageReadStore, metadata: FileMetaData) {

  private val columns = new ColumnReadStoreImpl(
    pages,
    // Not used, as entries are made here, but Parquet asks for one.
    new DummyRecordConverter(metadata.getSchema).getRootConverter,
    metadata.getSchema,
    metadata.getCreatedBy
  )

  private val keys   = column("tensor_key")
  private val files  = new Texts(column("file_name"))
  private val shapes = column("shape")
  private val dtypes = new Texts(column("dtype"))
  private val starts = column("data_start")
  private val ends   = column("data_end")
  private val others = Seq(files.column, shapes, dtypes.column, starts, ends)

  private def column(name: String): IndexColumn =
    metadata.getSchema.getColumns.asScala.find(_.getPath.head == name).fold(
      throw new IllegalArgumentException(s"it has no column `$name`"))(descriptor =>
      new IndexColumn(columns.getColumnReader(descriptor)))

  // So many rows have passed of which only the key was read.
  private var passed = 0

  def entries(wanted: Keys): Iterator[IndexEntry] =
    Iterator.fill(math.toIntExact(pages.getRowCount))(next(wanted)).filter(_ != null)

  private def next(wanted: Keys): IndexEntry = {
    val key = keys.value(_.getBinary).getBytesUnsafe
    if (wanted.contain(key)) {
      others.foreach(_.skip(passed))
      passed = 0
      IndexEntry(new String(key, UTF_8), files.next(), shapes.values(_.getInteger), dtypes.next(),
        starts.value(_.getLong), ends.value(_.getLong))
    } else {
      passed += 1
      null
    }
  }
}

/** A column of an index, a row after another. */
private final class IndexColumn(reader: ColumnReader) {
  private val present = reader.getDescriptor.getMaxDefinitionLevel

  private def isPresent = reader.getCurrentDefinitionLevel == present

  /** The value of the next row. */
  def value[A](read: ColumnReader => A): A = {
    if (!isPresent)
      throw new IllegalArgumentException(s"it has an empty cell in `${reader.getDescriptor.getPath.head}`")
    val value = read(reader)
    reader.consume()
    value
  }

  /** The values of the next row, which is a list. */
  def values[A](read: ColumnReader => A): Vector[A] = {
    val found = Vector.newBuilder[A]
    row(found += read(reader))
    found.result()
  }

  def skip(rows: Int): Unit = (0 until rows).foreach(_ => row(reader.skip()))

  private def row(take: => Any): Unit = {
    if (isPresent) take
    reader.consume()
    // The level of the value that comes next, which is 0 where a row begins.
    while (reader.getCurrentRepetitionLevel > 0) {
      take
      reader.consume()
    }
  }
}

/** A column of texts, of which one is mostly like the one before. */
private final class Texts(val column: IndexColumn) {
  private var last = Binary.EMPTY
  private var text = ""

  def next(): String = {
    val value = column.value(_.getBinary)
    if (value != last) {
      last = value.copy
      text = value.toStringUsingUTF8
    }
    text
  }
}

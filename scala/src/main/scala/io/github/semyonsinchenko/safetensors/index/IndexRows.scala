package io.github.semyonsinchenko.safetensors.index

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.parquet.column.ColumnReader
import org.apache.parquet.column.impl.ColumnReadStoreImpl
import org.apache.parquet.column.page.PageReadStore
import org.apache.parquet.example.DummyRecordConverter
import org.apache.parquet.hadoop.metadata.FileMetaData
import org.apache.parquet.io.api.Binary

/** Reads the rows of a row group as entries. For rows with other keys it decodes only the key. */
private[index] final class IndexRows(pages: PageReadStore, metadata: FileMetaData) {

  private val columns = new ColumnReadStoreImpl(
    pages,
    // Parquet requires a converter, but this class does not use it.
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

  // The number of rows since the last entry. Only their keys were read.
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

/** Reads a column of an index row by row. */
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
    // The repetition level of the next value is 0 at the start of a row.
    while (reader.getCurrentRepetitionLevel > 0) {
      take
      reader.consume()
    }
  }
}

/** A column of strings. It caches the last string, because most values equal the previous one. */
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

package io.github.semyonsinchenko.safetensors.read.rows

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.CatalystTypeConverters
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.{Bytes, RepeatedNames}
import io.github.semyonsinchenko.safetensors.read.columns.RowColumn
import io.github.semyonsinchenko.safetensors.read.conditions.Conditions
import io.github.semyonsinchenko.safetensors.storage.{IgnoredFiles, UnreadableFileException}
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** Rows of one ragged column `x`, in a file without a manifest. */
class RaggedRowsTest extends AnyFunSuite {

  /** A file of values and offsets; `shape` is that of a value. */
  private def content(
      kind: String,
      dtype: String,
      shape: Seq[Int],
      values: Array[Byte],
      offsets: Seq[Long]) = {
    val size    = values.length
    val count   = size / shape.product
    val padding = (8 - size % 8) % 8
    val begin   = size + padding
    // A tensor fills the gap: the format allows none.
    val tensors = Seq(
      s""""__metadata__":{"column_kinds":"{\\"x\\":\\"$kind\\"}"}""",
      s""""x":{"dtype":"$dtype","shape":${(count +: shape).mkString("[", ",",
          "]")},"data_offsets":[0,$size]}""",
      s""""y":{"dtype":"U8","shape":[$padding],"data_offsets":[$size,$begin]}""",
      s""""x.offsets":{"dtype":"I64","shape":[${offsets.size}],"data_offsets":[$begin,${begin + 8 * offsets.size}]}"""
    )
    val longs = ByteBuffer.allocate(8 * offsets.size).order(ByteOrder.LITTLE_ENDIAN)
    offsets.foreach(longs.putLong)
    Bytes.file(tensors.mkString("{", ",", "}")) ++ values ++ new Array[Byte](padding) ++ longs.array
  }

  /** The rows of a split, as Spark shows them. */
  private def rows(to: DataType, file: Array[Byte], span: Long => Span = _ => Span.All): Seq[Any] =
    TempDir { directory =>
      val path = directory.resolve("a.safetensors")
      Files.write(path, file)
      val column  = RowColumn.ofTensor(StructField("x", to, nullable = false))
      val layout  = SampleRows(Vector(column), Vector(column), Conditions(Vector.empty))
      val length  = Files.size(path)
      val part    = FilePart(DataFile.at(path.toString, length), span = span(length))
      val state   = new TaskState(RepeatedNames.LastCounts, true, IgnoredFiles.None, new Configuration)
      val batches = new BatchesInTurn(new RowBatches(Seq(part), layout, None, state))
      val show    = CatalystTypeConverters.createToScalaConverter(to)
      val found   = mutable.ArrayBuffer.empty[Any]
      try {
        var batch = batches.next()
        while (batch.rows.nonEmpty) {
          found ++= batch.rows.map(row => show(row.get(0, to)))
          batch = batches.next()
        }
      } finally batches.close()
      found.toSeq
    }

  private def refused(to: DataType, file: Array[Byte]): String = {
    val message = intercept[UnreadableFileException](rows(to, file)).getMessage
    assert(message.contains("/a.safetensors: ") && message.contains("`x`"))
    message
  }

  private val ints   = Array[Byte](1, 2, 3, 4, 5, 6)
  private val shorts = ArrayType(ShortType, containsNull = false)

  test("arrays have the lengths that offsets say, and may be empty") {
    assert(rows(shorts, content("ragged", "I8", Nil, ints, Seq(0, 2, 2, 6))) ==
      Seq(Seq(1, 2), Nil, Seq(3, 4, 5, 6)))
    assert(rows(shorts, content("ragged", "I8", Nil, Array.emptyByteArray, Seq(0, 0, 0))) == Seq(Nil, Nil))
    assert(rows(shorts, content("ragged", "I8", Nil, Array.emptyByteArray, Seq(0))) == Nil)
  }

  test("arrays of arrays differ in their first dimension") {
    assert(rows(ArrayType(shorts, containsNull = false),
      content("ragged", "I8", Seq(2), ints, Seq(0, 1, 1, 3))) ==
      Seq(Seq(Seq(1, 2)), Nil, Seq(Seq(3, 4), Seq(5, 6))))
  }

  test("Tensor Structs have a shape of their own") {
    val found = rows(TensorStruct.dataType, content("ragged", "I8", Seq(2), ints, Seq(0, 1, 1, 3)))
      .map(_.asInstanceOf[Row]).map(row =>
        (row.getAs[Array[Byte]](0).toSeq, row.getSeq[Int](1), row.getString(2)))
    assert(found == Seq((Seq[Byte](1, 2), Seq(1, 2), "I8"), (Nil, Seq(0, 2), "I8"),
      (Seq[Byte](3, 4, 5, 6), Seq(2, 2), "I8")))
  }

  test("text and bytes are slices of the values") {
    val text = "\u00e9\ud83d\ude00z".getBytes(UTF_8)
    assert(rows(StringType, content("text", "U8", Nil, text, Seq(0, 2, 2, 6, 7))) ==
      Seq("\u00e9", "", "\ud83d\ude00", "z"))
    val found = rows(BinaryType, content("binary", "U8", Nil, text, Seq(0, 1, 7)))
    assert(found.map(_.asInstanceOf[Array[Byte]].toSeq) == Seq(text.take(1).toSeq, text.drop(1).toSeq))
  }

  test("the splits of a file have each row once") {
    val offsets = (0L to 100L).map(row => row * (row + 1) / 2)
    val values  = Array.tabulate(offsets.last.toInt)(i => i.toByte)
    val file    = content("ragged", "I8", Nil, values, offsets)
    val whole   = rows(shorts, file)
    assert(
      whole == (0 until 100).map(row =>
        values.slice(offsets(row).toInt, offsets(row + 1).toInt).map(_.toShort).toSeq))
    val parts = (0 until 7).map(i =>
      rows(shorts, file, length => Span(length * i / 7, if (i == 6) Long.MaxValue else length * (i + 1) / 7)))
    assert(parts.count(_.nonEmpty) > 1 && parts.flatten == whole)
  }

  // Six values.
  private val damages = Seq(
    Seq(0L, 4L, 2L, 6L) -> "offsets 4 and 2 for row 1, expected ascending numbers up to its 6 values",
    Seq(0L, 2L, 7L)     -> "offsets 2 and 7 for row 1, expected ascending numbers up to its 6 values",
    Seq(0L, -1L, 6L)    -> "offsets 0 and -1 for row 0",
    Seq(1L, 2L, 6L)     -> "offsets that begin with 1, expected 0",
    Seq(0L, 2L, 5L)     -> "offsets whose last one is 5, expected its number of values, 6",
    Seq(0L)             -> "offsets whose last one is 0, expected its number of values, 6"
  )

  for ((offsets, words) <- damages)
    test(s"offsets of ${offsets.mkString(", ")} for six values are an error") {
      for ((kind, dtype, to) <-
          Seq(("ragged", "I8", shorts), ("text", "U8", StringType), ("binary", "U8", BinaryType)))
        assert(refused(to, content(kind, dtype, Nil, ints, offsets)).contains(words))
    }

  test("an offset that splits a character is an error that names the row") {
    val text = "a\u00e9".getBytes(UTF_8)
    for (offsets <- Seq(Seq(0L, 2L, 3L), Seq(0L, 1L, 2L, 3L)))
      assert(refused(StringType, content("text", "U8", Nil, text, offsets)).contains(
          s"the text column `x` has bytes in row ${offsets.indexOf(2L) - 1} that are not UTF-8"))
  }
}

package io.github.semyonsinchenko.safetensors.write.shards

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.codec.Rounding
import io.github.semyonsinchenko.safetensors.dataset.{ColumnKind, ColumnRecord}
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.{NumberType, TensorStruct}
import io.github.semyonsinchenko.safetensors.write.encode.InvalidCellException
import io.github.semyonsinchenko.safetensors.write.memory.{Pages, Payload}
import io.github.semyonsinchenko.safetensors.write.plan.{CellType, ColumnPlan}

class RaggedColumnTest extends AnyFunSuite {

  /** A type of cells, as a plan has it. */
  private case class Kind(
      cells: CellType,
      of: DataType,
      kind: ColumnKind = ColumnKind.Ragged,
      dtype: Option[Dtype] = None,
      shape: Option[Seq[Int]] = None,
      existing: Option[ColumnRecord] = None) {

    def plan: ColumnPlan =
      ColumnPlan("x", 0, cells, kind, dtype, shape, Rounding.Truncate, of.catalogString, existing)
  }

  private val ints =
    Kind(CellType.Arrays(NumberType.Int, containsNull = true), ArrayType(IntegerType),
      dtype = Some(Dtype.I32), shape = Some(Nil))
  private val pairs =
    Kind(CellType.Nested(NumberType.Byte, 2), ArrayType(ArrayType(ByteType)), dtype = Some(Dtype.I8))
  private val tensors = Kind(CellType.Tensor, TensorStruct.dataType)
  private val text =
    Kind(CellType.Text, StringType, ColumnKind.Text, dtype = Some(Dtype.U8), shape = Some(Nil))
  private val binary =
    Kind(CellType.Bytes, BinaryType, ColumnKind.Binary, dtype = Some(Dtype.U8), shape = Some(Nil))

  /** A shard's tensors of a column: the shape and bytes of the values, and the offsets. */
  private type Stored = (Seq[Long], Seq[Byte], Seq[Long])

  /** Each cell as Spark's row memory has it, and as a row of objects. */
  private def withColumn[A](kind: Kind)(body: (RaggedColumn, Any => InternalRow) => A): A = {
    val unsafe = UnsafeProjection.create(Array[DataType](kind.of))
    val made: Seq[Any => InternalRow] =
      Seq(cell => new GenericInternalRow(Array[Any](cell)),
        cell => unsafe(new GenericInternalRow(Array[Any](cell))).copy())
    val results = made.map { row =>
      val pages  = new Pages(1 << 20, 1 << 10)
      def memory = new Payload(pages, () => fail("nothing to spill"))
      val column = new RaggedColumn(kind.plan, memory, memory)
      try body(column, row)
      finally column.close()
    }
    assert(results(0) == results(1))
    results(0)
  }

  private def append(column: RaggedColumn, cells: Seq[InternalRow]): Unit =
    cells.zipWithIndex.foreach { case (row, index) => column.append(row, index) }

  private def stored(column: RaggedColumn, rows: Int): Stored = {
    val tensors           = column.tensors(rows)
    val (values, offsets) = (tensors.head, tensors.last)
    assert((values.name, offsets.name, offsets.dtype) == (("x", "x.offsets", Dtype.I64)))
    assert(offsets.shape == Seq(rows + 1L))
    val longs = bytesOf(offsets).toArray
    val at    = ByteBuffer.wrap(longs).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer
    (values.shape, bytesOf(values), Seq.fill(at.remaining)(at.get))
  }

  private def bytesOf(tensor: BatchTensor): Seq[Byte] = {
    val all = mutable.ArrayBuffer.empty[Byte]
    tensor.payload.drain(part => while (part.hasRemaining) all += part.get)
    all.toSeq
  }

  private def written(kind: Kind, cells: Any*): Stored = withColumn(kind) { (column, row) =>
    append(column, cells.map(row))
    stored(column, cells.size)
  }

  private def refused(kind: Kind, cells: Any*): String = withColumn(kind) { (column, row) =>
    append(column, cells.init.map(row))
    intercept[InvalidCellException](column.append(row(cells.last), cells.size - 1)).getMessage
  }

  private def array(values: Any*): ArrayData = new GenericArrayData(values.toArray[Any])

  private def bytes(values: Int*): ArrayData = array(values.map(_.toByte): _*)

  private def tensor(dtype: String, shape: Int*)(bytes: Int*): InternalRow =
    InternalRow(bytes.map(_.toByte).toArray, array(shape: _*), UTF8String.fromString(dtype))

  private def utf8(value: String): UTF8String = UTF8String.fromString(value)

  test("values lie one row after the other, and offsets say where each begins") {
    val (shape, bytes, offsets) = written(ints, array(1, 2), array(), array(258))
    assert((shape, offsets) == ((Seq(3L), Seq(0L, 2L, 2L, 3L))))
    assert(bytes == Seq[Byte](1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 0, 0))
  }

  test("arrays of arrays differ in their first dimension alone") {
    assert(written(pairs, array(bytes(1, 2), bytes(3, 4)), array(), array(bytes(5, 6))) ==
      ((Seq(3L, 2L), Seq[Byte](1, 2, 3, 4, 5, 6), Seq(0L, 2L, 2L, 3L))))
    assert(refused(pairs, array(bytes(1, 2)), array(bytes(1, 2, 3))).startsWith(
        "I8 [1, 3], but rows before it have I8 [?, 2]. Rows of a ragged column differ in their first dimension alone"))
    assert(refused(pairs, array(bytes(1, 2), bytes(3))).startsWith(
        "arrays of 2 and of 1 elements at depth 2"))
  }

  test("Tensor Structs differ in their first dimension alone") {
    assert(written(tensors, tensor("U8", 1, 2)(1, 2), tensor("U8", 0, 2)(), tensor("U8", 2, 2)(3, 4, 5, 6)) ==
      ((Seq(3L, 2L), Seq[Byte](1, 2, 3, 4, 5, 6), Seq(0L, 1L, 1L, 3L))))
    assert(refused(tensors, tensor("U8", 1, 2)(1, 2), tensor("U8", 2, 1)(1, 2)).startsWith(
        "U8 [2, 1], but rows before it have U8 [?, 2]"))
    assert(refused(tensors, tensor("U8", 1)(1), tensor("I8", 0)()).startsWith(
        "I8 [0], but rows before it have U8 [?]"))
    assert(refused(tensors, tensor("U8")(1)).startsWith(
        "U8 [], and the rows of a ragged column have a first dimension"))
  }

  test("rows without values do not tell the shape of a value, and take that of any other row") {
    assert(written(pairs, array(), array()) == ((Seq(0L, 0L), Nil, Seq(0L, 0L, 0L))))
    assert(written(pairs, array(), array(bytes(1, 2, 3)))._1 == Seq(1L, 3L))
    assert(
      withColumn(pairs)((column, row) => { column.append(row(array()), 0); column.record }).shape.isEmpty)
  }

  test("a Tensor Struct without values tells the shape of a value, unless that is of zeros") {
    assert(written(tensors, tensor("U8", 0, 0)(), tensor("U8", 0, 4)())._1 == Seq(0L, 4L))
    assert(written(tensors, tensor("U8", 1, 2)(1, 2), tensor("U8", 0, 0)())._1 == Seq(1L, 2L))
    assert(refused(tensors, tensor("U8", 1, 2)(1, 2), tensor("U8", 0, 4)()).startsWith(
        "U8 [0, 4], but rows before it have U8 [?, 2]"))
  }

  test("rows without values have the shape of the dataset that they are appended to") {
    val there = Some(ColumnRecord("x", Some("I8"), Some(Seq(2)), ColumnKind.Ragged))
    assert(written(pairs.copy(existing = there), array())._1 == Seq(0L, 2L))
    assert(refused(pairs.copy(existing = there), array(), array(bytes(1))).startsWith(
        "I8 [1, 1], but the rows of the dataset have I8 [?, 2]"))
  }

  test("a null, as a row, a level or an element, is an error") {
    assert(refused(ints, array(1), null).startsWith("null, and tensors have no nulls"))
    assert(refused(ints, array(1, null)).startsWith("element 1 is null"))
    assert(refused(pairs, array(bytes(1), null)).startsWith("element 1 is null"))
    assert(refused(pairs, array(bytes(1), array(null))).startsWith("element 0 is null"))
    assert(refused(text, null).startsWith("null, and tensors have no nulls"))
  }

  test("text is the UTF-8 of its rows, of slices of a string too, and no offset splits a character") {
    val whole = "z\u00e9\ud83d\ude00!".getBytes(UTF_8)
    val (shape, bytes, offsets) =
      written(text, UTF8String.fromBytes(whole, 1, 2), utf8(""), UTF8String.fromBytes(whole, 3, 4), utf8("z"))
    assert((shape, offsets) == ((Seq(7L), Seq(0L, 2L, 2L, 6L, 7L))))
    assert(new String(bytes.toArray, UTF_8) == "\u00e9\ud83d\ude00z")
    assert(refused(text, UTF8String.fromBytes(whole, 1, 1)).contains("not valid UTF-8"))
  }

  test("binary values are their bytes") {
    assert(written(binary, Array[Byte](-1, 0), Array.emptyByteArray, Array[Byte](7)) ==
      ((Seq(3L), Seq[Byte](-1, 0, 7), Seq(0L, 2L, 2L, 3L))))
  }

  test("tensors that are appended to text are text") {
    val appended =
      text.copy(cells = CellType.Tensor, of = TensorStruct.dataType, dtype = None, shape = None,
        existing = Some(ColumnRecord("x", Some("U8"), Some(Nil), ColumnKind.Text)))
    assert(written(appended, tensor("U8", 2)(0xc3, 0xa9), tensor("U8", 0)()) ==
      ((Seq(2L), Seq[Byte](0xc3.toByte, 0xa9.toByte), Seq(0L, 2L, 2L))))
    assert(refused(appended, tensor("U8", 1)(0xc3)).contains("not valid UTF-8"))
    assert(refused(appended, tensor("I8", 1)(1)).startsWith(
        "I8 [1], but the rows of the dataset have U8 [?]"))
  }

  test("padding rows are empty, and each batch has offsets of its own") {
    withColumn(ints) { (column, row) =>
      append(column, Seq(array(1), array(2, 3)).map(row))
      column.pad(2, 4)
      assert(stored(column, 4)._3 == Seq(0L, 1L, 3L, 3L, 3L))
      column.append(row(array(4)), 0)
      column.discard()
      append(column, Seq(array(5), array(6)).map(row))
      val (shape, bytes, offsets) = stored(column, 2)
      assert((shape, offsets) == ((Seq(2L), Seq(0L, 1L, 2L))))
      assert(bytes == Seq[Byte](5, 0, 0, 0, 6, 0, 0, 0))
    }
  }
}

package io.github.semyonsinchenko.safetensors.write.encode

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.codec.Rounding
import io.github.semyonsinchenko.safetensors.dataset.ColumnKind
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.{NumberType, TensorStruct}
import io.github.semyonsinchenko.safetensors.write.memory.{Pages, Payload}
import io.github.semyonsinchenko.safetensors.write.plan.{CellType, ColumnPlan}
import io.github.semyonsinchenko.safetensors.write.shards.ShardFile

/** Each test encodes the cell as Spark's row memory has it, and as a row of objects. */
class CellEncoderTest extends AnyFunSuite {

  private def encode(
      cells: CellType,
      dataType: DataType,
      cell: Any,
      dtype: Option[Dtype] = None,
      shape: Option[Seq[Int]] = None): (Sample, Seq[Byte]) = {
    val generic = new GenericInternalRow(Array[Any](cell))
    val unsafe  = UnsafeProjection.create(Array(dataType)).apply(generic)
    val results = Seq(generic, unsafe).map { row =>
      encodeRow(CellEncoders.of(planned(cells, dtype, shape)), row)
    }
    assert(results(0) == results(1))
    results(0)
  }

  private def planned(cells: CellType, dtype: Option[Dtype], shape: Option[Seq[Int]]) = {
    val own = if (cells.isInstanceOf[CellType.Scalars]) Some(Nil) else None
    ColumnPlan("x", 0, cells, ColumnKind.Fixed, dtype, shape.orElse(own), Rounding.Truncate, "")
  }

  private def encodeRow(encoder: CellEncoder, row: InternalRow): (Sample, Seq[Byte]) = TempDir { directory =>
    val payload = new Payload(new Pages(1 << 20, 1 << 10), () => fail("nothing to spill"))
    val sample  = encoder.encode(row, 0, _ => payload)
    val file    = ShardFile.create(new Path(directory.resolve("a").toUri), new Configuration)
    payload.drain(file.write)
    file.close()
    (sample, Files.readAllBytes(directory.resolve("a")).toSeq)
  }

  private def refused(
      cells: CellType,
      dataType: DataType,
      cell: Any,
      shape: Option[Seq[Int]] = None,
      dtype: Option[Dtype] = None): String =
    intercept[InvalidCellException](encode(cells, dataType, cell, dtype, shape)).getMessage

  private def floats(values: Float*): Seq[Byte] = {
    val buffer = ByteBuffer.allocate(values.size * 4).order(ByteOrder.LITTLE_ENDIAN)
    values.foreach(buffer.putFloat)
    buffer.array.toSeq
  }

  private def array(values: Any*): ArrayData = new GenericArrayData(values.toArray[Any])

  private val floatArrays = CellType.Arrays(NumberType.Float, containsNull = true)
  private val floatArray  = ArrayType(FloatType)

  test("a number is a tensor without dimensions") {
    assert(encode(CellType.Scalars(NumberType.Float), FloatType, 1.5f) == ((Sample(Dtype.F32, Nil),
      floats(1.5f))))
    assert(encode(CellType.Scalars(NumberType.Long), LongType, 258L, Some(Dtype.U16)) ==
      ((Sample(Dtype.U16, Nil), Seq[Byte](2, 1))))
    assert(encode(CellType.Scalars(NumberType.Int), IntegerType, 7, Some(Dtype.U8),
      Some(Seq(1, 1)))._1 == Sample(Dtype.U8, Seq(1, 1)))
  }

  test("an array is a vector, or what `shapes` makes of it") {
    assert(encode(floatArrays, floatArray, array(1f, 2f)) == ((Sample(Dtype.F32, Seq(2)), floats(1f, 2f))))
    assert(encode(floatArrays, floatArray, array(1f, 2f), shape = Some(Seq(2, 1)))._1.shape == Seq(2, 1))
    assert(encode(floatArrays, floatArray, array()) == ((Sample(Dtype.F32, Seq(0)), Nil)))
    assert(refused(floatArrays, floatArray, array(1f, 2f), Some(Seq(3))) ==
      "2 elements, but `shapes` gives the column [3], which takes 3")
  }

  test("a null among the elements is an error that says where, past the first word of null bits too") {
    assert(refused(floatArrays, floatArray, array(1f, null)).startsWith(
        "element 1 is null, and tensors have no nulls."))
    val values = Seq.fill[Any](100)(1f).updated(70, null)
    assert(refused(floatArrays, floatArray, array(values: _*)).startsWith("element 70 is null"))
  }

  test("a value that the dtype cannot hold is an error with the value") {
    assert(refused(floatArrays, floatArray, array(300f), dtype = Some(Dtype.U8)).startsWith(
        "U8 cannot hold 300.0"))
  }

  private val nested     = CellType.Nested(NumberType.Float, 2)
  private val nestedType = ArrayType(floatArray)

  test("arrays of arrays have a dimension for each level, row-major") {
    assert(encode(nested, nestedType, array(array(1f, 2f, 3f), array(4f, 5f, 6f))) ==
      ((Sample(Dtype.F32, Seq(2, 3)), floats(1, 2, 3, 4, 5, 6))))
    val deep = array(array(array(1f), array(2f)), array(array(3f), array(4f)), array(array(5f), array(6f)))
    assert(encode(CellType.Nested(NumberType.Float, 3), ArrayType(nestedType), deep) ==
      ((Sample(Dtype.F32, Seq(3, 2, 1)), floats(1, 2, 3, 4, 5, 6))))
    assert(encode(nested, nestedType, array())._1.shape == Seq(0, 0))
    assert(encode(nested, nestedType, array(array(1f, 2f)), shape = Some(Seq(2)))._1.shape == Seq(2))
  }

  test("ragged arrays, and nulls at any level, are errors") {
    assert(refused(nested, nestedType, array(array(1f, 2f), array(3f))).startsWith(
        "arrays of 2 and of 1 elements at depth 2: only the first dimension of a row may differ"))
    assert(refused(nested, nestedType, array(array(1f), null)).startsWith("element 1 is null"))
    assert(refused(nested, nestedType, array(null, array(1f))).startsWith("element 0 is null"))
    assert(refused(nested, nestedType, array(array(1f), array(null))).startsWith("element 0 is null"))
  }

  test("strings and binary values are vectors of their bytes") {
    val text = "z\u00e9\ud83d\ude00"
    assert(encode(CellType.Text, StringType, UTF8String.fromString(text)) ==
      ((Sample(Dtype.U8, Seq(7)), text.getBytes(UTF_8).toSeq)))
    assert(encode(CellType.Text, StringType, UTF8String.EMPTY_UTF8) == ((Sample(Dtype.U8, Seq(0)), Nil)))
    assert(encode(CellType.Bytes, BinaryType, Array[Byte](-1, 0, 7)) ==
      ((Sample(Dtype.U8, Seq(3)), Seq[Byte](-1, 0, 7))))
  }

  test("a string that is not UTF-8 is an error that shows it") {
    for (bytes <-
        Seq(Array(0x61, 0xff, 0x62), Array(0x61, 0xed, 0xa0, 0x80, 0x62), Array(0x61, 0xc0, 0x80, 0x62)))
      assert(refused(CellType.Text, StringType, UTF8String.fromBytes(bytes.map(_.toByte))).matches(
          "(?s)`a\ufffd+b`, a string whose bytes are not valid UTF-8 .*"))
  }

  test("booleans are bytes of 0 and 1, or numbers") {
    val arrays = CellType.Arrays(NumberType.Boolean, containsNull = false)
    val cell   = array(true, false, true)
    assert(encode(arrays, ArrayType(BooleanType, containsNull = false), cell) ==
      ((Sample(Dtype.BOOL, Seq(3)), Seq[Byte](1, 0, 1))))
    assert(encode(arrays, ArrayType(BooleanType, containsNull = false), cell, Some(Dtype.F32))._2 ==
      floats(1, 0, 1))
    assert(encode(CellType.Scalars(NumberType.Boolean), BooleanType, true) ==
      ((Sample(Dtype.BOOL, Nil), Seq[Byte](1))))
  }

  test("vectors of Spark ML are dense tensors, sparse ones too") {
    val vector = new StructType().add("type", ByteType).add("size", IntegerType)
      .add("indices", ArrayType(IntegerType, containsNull = false)).add("values",
        ArrayType(DoubleType, containsNull = false))
    val dense  = InternalRow(1.toByte, null, null, array(1.0, 0.0, 2.0))
    val sparse = InternalRow(0.toByte, 3, array(0, 2), array(1.0, 2.0))
    for (cell <- Seq(dense, sparse))
      assert(encode(CellType.Vectors, vector, cell, Some(Dtype.F32)) == ((Sample(Dtype.F32, Seq(3)),
        floats(1, 0, 2))))
    assert(encode(CellType.Vectors, vector, sparse)._1.dtype == Dtype.F64)
  }

  private def tensor(bytes: Array[Byte], shape: ArrayData, dtype: String): InternalRow =
    InternalRow(bytes, shape, UTF8String.fromString(dtype))

  private val nullable = StructType(TensorStruct.dataType.map(_.copy(nullable = true)))

  private def refusedTensor(bytes: Array[Byte], shape: ArrayData, dtype: String): String =
    refused(CellType.Tensor, nullable, tensor(bytes, shape, dtype))

  test("a Tensor Struct is its bytes, of any dtype") {
    val bytes = Array[Byte](1, 2, 3)
    for (dtype <- Dtype.all.filter(_.bits == 8))
      assert(encode(CellType.Tensor, TensorStruct.dataType, tensor(bytes, array(3, 1), dtype.name)) ==
        ((Sample(dtype, Seq(3, 1)), bytes.toSeq)))
    assert(encode(CellType.Tensor, TensorStruct.dataType, tensor(bytes, array(4), "F6_E2M3"))._1 == Sample(
      Dtype.F6_E2M3, Seq(4)))
    assert(encode(CellType.Tensor, TensorStruct.dataType, tensor(bytes, array(3), "U8"),
      shape = Some(Seq(1, 3)))._1.shape == Seq(1, 3))
  }

  test("a Tensor Struct whose fields do not fit each other is an error that says how") {
    assert(refusedTensor(Array(1, 2), array(3), "U8") == "2 bytes of data, but shape [3] of U8 takes 3")
    assert(refusedTensor(Array(1), array(1), "u8").startsWith(
        "the unknown dtype `u8`, expected one of BOOL,"))
    assert(refusedTensor(Array(1), array(-1), "U8") == "the negative dimension in shape [-1]")
    assert(refusedTensor(Array(1), array(3), "F4") == "shape [3] of F4, which fills no whole bytes")
    assert(refusedTensor(Array(1), array(Int.MaxValue, Int.MaxValue, Int.MaxValue), "U8").endsWith(
        "which no 64 bits count"))
    assert(refusedTensor(null, array(1), "U8") == "`data` is null")
    assert(refusedTensor(Array(1), array(null), "U8") == "a dimension in `shape` is null")
    assert(refused(CellType.Tensor, TensorStruct.dataType, tensor(Array(1), array(1), "U8"),
      dtype = Some(Dtype.I8)) ==
      "dtype U8, but the option `dtype` asks for I8, and bytes are not converted")
  }
}

package io.github.semyonsinchenko.safetensors.read.rows

import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeArrayData, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.unsafe.types.UTF8String
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.{Bytes, Dtype, RepeatedNames, TensorInfo}
import io.github.semyonsinchenko.safetensors.read.columns.TensorField
import io.github.semyonsinchenko.safetensors.storage.IgnoredFiles
import io.github.semyonsinchenko.safetensors.types.TensorStruct

class TensorCellTest extends AnyFunSuite with ScalaCheckPropertyChecks {

  private val fieldSets =
    Seq("data", "shape", "dtype").toSet.subsets().filter(_.nonEmpty).flatMap(_.toSeq.permutations).toVector

  /** A tensor of which the shape need not fit the bytes: only the struct is looked at. */
  private val tensors = for {
    size  <- Gen.choose(0, 40)
    dims  <- Gen.listOf(Gen.choose(0L, 1000L))
    dtype <- Gen.oneOf(Dtype.all)
  } yield TensorInfo("t", dtype, dims.toVector, 0, size.toLong)

  private def struct(names: Seq[String]) =
    StructType(names.map(TensorStruct.dataType(_)).map(field => StructField(field.name, field.dataType)))

  /** As Spark itself makes it of values. */
  private def bySpark(names: Seq[String], tensor: TensorInfo, data: Array[Byte]): Array[Byte] = {
    val values = names.map {
      case "data"  => data
      case "shape" => UnsafeArrayData.fromPrimitiveArray(tensor.shape.map(_.toInt).toArray)
      case "dtype" => UTF8String.fromString(tensor.dtype.name)
    }
    UnsafeProjection.create(struct(names)).apply(InternalRow.fromSeq(values)).getBytes
  }

  test("structs are the bytes that Spark makes of the same values, whatever was in memory before") {
    TempDir { directory =>
      val path = directory.resolve("a.safetensors")
      Files.write(path, Bytes.file("""{"t":["U8",[40],[0,40]]}""", data = 40))
      val file = new OpenFile(
        FilePart(DataFile.at(path.toString, Files.size(path))),
        new TaskState(RepeatedNames.LastCounts, caseSensitive = false, IgnoredFiles.None, new Configuration))
      forAll(Gen.oneOf(fieldSets), tensors) { (names, tensor) =>
        file.memory.reserve(1000)
        val old = file.memory.chunk
        java.util.Arrays.fill(old, -1.toByte)
        file.memory.reset()
        val start = Files.size(path) - 40
        val cell  = new TensorCell(file, TensorField.of(struct(names)))
        val rows = Seq(tensor, tensor, tensor.copy(dtype = Dtype.U8)).map(one =>
          one -> cell.struct(one, one.shape, start, one.size))
        file.memory.fill(file.source)
        val data   = file.source.bytes(start, tensor.size.toInt)
        val copied = UnsafeProjection.create(struct(names))
        for ((one, row) <- rows) {
          val bytes = row match {
            case unsafe: UnsafeRow => unsafe.getBytes
            case other             => copied(other).getBytes
          }
          assert(bytes.toSeq == bySpark(names, one, data).toSeq)
        }
      }
      file.close()
    }
  }
}

package io.github.semyonsinchenko.safetensors.functions

import java.util.Random
import java.util.concurrent.TimeUnit

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{ArrayType, FloatType}
import org.apache.spark.unsafe.types.UTF8String
import org.openjdk.jmh.annotations._

/** What the generated code of a query calls for a row of floats. */
class FunctionsBenchmark extends Floats {

  @Param(Array("F32", "BF16", "F16"))
  var dtype: String = _

  private val toTensor = new ArrayToTensor(ArrayType(FloatType, containsNull = true))
  private val toArray  = new TensorToArray(Elements.Floats)

  private val truncate    = UTF8String.fromString("truncate")
  private val nearestEven = UTF8String.fromString("nearest_even")

  private var array: ArrayData    = _
  private var shape: ArrayData    = _
  private var name: UTF8String    = _
  private var tensor: InternalRow = _

  @Setup
  def row(): Unit = {
    // Copies lie in bytes, as rows do.
    array = UnsafeArrayData.fromPrimitiveArray(values).copy()
    shape = UnsafeArrayData.fromPrimitiveArray(Array(elements)).copy()
    name = UTF8String.fromString(dtype)
    tensor = encodeNearestEven()
  }

  @Benchmark
  def encodeTruncate(): InternalRow = toTensor(array, shape, name, truncate)

  @Benchmark
  def encodeNearestEven(): InternalRow = toTensor(array, shape, name, nearestEven)

  @Benchmark
  def decode(): ArrayData = toArray(tensor)
}

/** The same floats, copied and nothing else. */
class CopyBenchmark extends Floats {

  private var target: Array[Float] = _

  @Setup
  def row(): Unit = target = new Array[Float](elements)

  /** To a new array, as the functions make a new value for each row. */
  @Benchmark
  def toNewArray(): Array[Float] = copyTo(new Array[Float](elements))

  /** To an array that is there, in the processor's cache. */
  @Benchmark
  def toSameArray(): Array[Float] = copyTo(target)

  private def copyTo(to: Array[Float]): Array[Float] = {
    System.arraycopy(values, 0, to, 0, elements)
    to
  }
}

@State(Scope.Thread)
@BenchmarkMode(Array(Mode.AverageTime))
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(2)
@Warmup(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 200, time = 5, timeUnit = TimeUnit.MILLISECONDS)
abstract class Floats {

  @Param(Array("4096", "262144"))
  var elements: Int = _

  protected var values: Array[Float] = _

  @Setup
  def fill(): Unit = {
    val random = new Random(0)
    values = Array.fill(elements)(random.nextGaussian().toFloat)
  }
}

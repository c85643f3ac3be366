package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.connector.catalog.functions.{BoundFunction, ScalarFunction, UnboundFunction}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.codec.Rounding
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/**
 * The tensor functions of the catalog, for sessions without the extensions. They evaluate rows like the session's functions.
 * Spark passes only the argument types when it binds a call, so a wrong literal is found at the first row.
 */
object CatalogFunctions {

  val all: Seq[UnboundFunction] = TensorFunctions.all.map { case (id, info, _) =>
    new TensorFunction(id.funcName, info.getUsage.replace("_FUNC_", id.funcName))
  } :+ Bucket

  private def bind(name: String, types: Seq[DataType]): Either[String, BoundFunction] =
    Elements.all.find(_.function == name) match {
      case Some(elements) => bindDecoding(elements, types)
      case None           => if (name == StShow.name) bindShowing(types) else bindEncoding(types)
    }

  private def bindDecoding(elements: Elements, types: Seq[DataType]): Either[String, BoundFunction] = for {
    _ <- checkCount(types, "1 argument", 1)
    _ <- StToArray.check(types.head)
  } yield new BoundStToArray(elements, types.head)

  private def bindEncoding(types: Seq[DataType]): Either[String, BoundFunction] = for {
    _ <- checkCount(types, "3 or 4 arguments", 3, 4)
    inputs = ArrToSt.inputTypes(types.head).take(types.size)
    _ <- ArrToSt.checkNumbers(inputs.head)
  } yield new BoundArrToSt(inputs)

  private def bindShowing(types: Seq[DataType]): Either[String, BoundFunction] = for {
    _ <- checkCount(types, "1 or 2 arguments", 1, 2)
    _ <- StToArray.check(types.head)
  } yield new BoundStShow(StShow.inputTypes(types.head).take(types.size))

  private def checkCount(types: Seq[DataType], expected: String, right: Int*): Either[String, Unit] =
    if (right.contains(types.size)) Right(()) else Left(s"expected $expected, but got ${types.size}.")

  private final class TensorFunction(function: String, usage: String) extends UnboundFunction {
    override def name(): String        = function
    override def description(): String = usage

    // Spark reports this exception together with the call.
    override def bind(inputs: StructType): BoundFunction =
      CatalogFunctions.bind(function, inputs.map(_.dataType)).fold(
        message => throw new UnsupportedOperationException(message.stripSuffix(".")),
        identity)
  }
}

/** `arr_to_st` for arguments of these types. Spark generates calls of the `invoke` with as many parameters. */
final class BoundArrToSt(types: Seq[DataType]) extends ScalarFunction[InternalRow] {

  // Independent of the array's type: Spark may add nulls after it binds the function.
  private val encoder = types.head match {
    case ArrayType(number, _) => new ArrayToTensor(ArrayType(number, containsNull = true))
    case other                => throw new IllegalArgumentException(s"${other.sql} is not an array.")
  }

  override def name(): String          = ArrToSt.name
  override def canonicalName(): String = s"safetensors.$name(${types.map(_.catalogString).mkString(", ")})"
  override def inputTypes(): Array[DataType] = types.toArray
  override def resultType(): DataType        = TensorStruct.dataType

  // Shown in plans and as the name of columns without an alias.
  override def toString: String = name()

  def invoke(array: ArrayData, shape: ArrayData, dtype: UTF8String): InternalRow =
    invoke(array, shape, dtype, BoundArrToSt.truncate)

  /** Null if an argument is null. */
  def invoke(array: ArrayData, shape: ArrayData, dtype: UTF8String, rounding: UTF8String): InternalRow =
    if (array == null || shape == null || dtype == null || rounding == null) null
    else encoder(array, shape, dtype, rounding)
}

private object BoundArrToSt {
  val truncate: UTF8String = UTF8String.fromString(Rounding.Truncate.name)
}

/** The `st_to_array` functions for a tensor of this type. Spark generates calls of `invoke`. */
final class BoundStToArray(elements: Elements, tensorType: DataType) extends ScalarFunction[ArrayData] {

  private val decoder = new TensorToArray(elements)

  override def name(): String          = elements.function
  override def canonicalName(): String = s"safetensors.$name"
  override def inputTypes(): Array[DataType] =
    Array(if (tensorType == NullType) TensorStruct.dataType else tensorType)
  override def resultType(): DataType = ArrayType(elements.dataType, containsNull = false)
  override def toString: String       = name()

  /** Null if the tensor is null. */
  def invoke(tensor: InternalRow): ArrayData = if (tensor == null) null else decoder(tensor)
}

/** `st_show` for arguments of these types. Spark generates calls of the `invoke` with as many parameters. */
final class BoundStShow(types: Seq[DataType]) extends ScalarFunction[UTF8String] {

  private val text = new TensorToText

  override def name(): String                = StShow.name
  override def canonicalName(): String       = s"safetensors.$name(${types.size})"
  override def inputTypes(): Array[DataType] = types.toArray
  override def resultType(): DataType        = StringType
  override def toString: String              = name()

  def invoke(tensor: InternalRow): UTF8String = invoke(tensor, StShow.Values)

  /** Null if the tensor is null. Spark does not call it if `values` is null. */
  def invoke(tensor: InternalRow, values: Int): UTF8String =
    if (tensor == null) null else text(tensor, values)
}

package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.catalyst.analysis.TypeCheckResult
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult.{TypeCheckFailure, TypeCheckSuccess}
import org.apache.spark.sql.catalyst.expressions.{
  Cast,
  CreateArray,
  Expression,
  ImplicitCastInputTypes,
  Literal,
  QuaternaryExpression
}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** `arr_to_st(array, shape, dtype, rounding)`: encodes numbers as a Tensor Struct. */
case class ArrToSt(array: Expression, shape: Expression, dtype: Expression, rounding: Expression)
    extends QuaternaryExpression with ImplicitCastInputTypes {

  override def first: Expression  = array
  override def second: Expression = shape
  override def third: Expression  = dtype
  override def fourth: Expression = rounding

  override def prettyName: String   = ArrToSt.name
  override def dataType: StructType = TensorStruct.dataType

  override def inputTypes: Seq[DataType] = ArrToSt.inputTypes(array.dataType)

  override def checkInputDataTypes(): TypeCheckResult = {
    val types = super.checkInputDataTypes()
    if (types.isFailure) types else checkLiterals.fold(TypeCheckFailure(_), _ => TypeCheckSuccess)
  }

  private def checkLiterals: Either[String, Unit] = for {
    _    <- ArrToSt.checkNumbers(array.dataType)
    _    <- Arguments.literal(dtype)(name => Arguments.dtype(name.toString))
    _    <- Arguments.literal(rounding)(name => Arguments.rounding(name.toString))
    dims <- Arguments.literal(shape)(dims => Arguments.shape(dims.asInstanceOf[ArrayData]))
    _ <- dims.zip(knownLength(array)).fold[Either[String, Unit]](Right(())) {
      case (dims, length) => Arguments.count(dims, length)
    }
  } yield ()

  private def knownLength(array: Expression): Option[Int] = array match {
    case create: CreateArray          => Some(create.children.length)
    case Literal(value: ArrayData, _) => Some(value.numElements())
    case cast: Cast                   => knownLength(cast.child)
    case _                            => None
  }

  @transient private lazy val encoder = new ArrayToTensor(array.dataType.asInstanceOf[ArrayType])

  override protected def nullSafeEval(array: Any, shape: Any, dtype: Any, rounding: Any): Any =
    encoder(
      array.asInstanceOf[ArrayData], shape.asInstanceOf[ArrayData],
      dtype.asInstanceOf[UTF8String], rounding.asInstanceOf[UTF8String])

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val reference = ctx.addReferenceObj("arrayToTensor", encoder)
    nullSafeCodeGen(ctx, ev,
      (array, shape, dtype, rounding) =>
        s"${ev.value} = $reference.apply($array, $shape, $dtype, $rounding);")
  }

  override protected def withNewChildrenInternal(
      first: Expression,
      second: Expression,
      third: Expression,
      fourth: Expression): ArrToSt =
    ArrToSt(first, second, third, fourth)
}

object ArrToSt {
  val name: String = ArrayToTensor.FunctionName

  /** The types that Spark casts the arguments to, by the type of the first. */
  private[functions] def inputTypes(array: DataType): Seq[DataType] = {
    // `array(1.0, 2.0)` contains decimals in SQL, and `array()` has no type. Both become doubles.
    val numbers = array match {
      case ArrayType(_: DecimalType | NullType, containsNull) => ArrayType(DoubleType, containsNull)
      case NullType                                           => ArrayType(DoubleType)
      case other                                              => other
    }
    Seq(numbers, ArrayType(IntegerType), StringType, StringType)
  }

  private[functions] def checkNumbers(array: DataType): Either[String, Unit] = array match {
    case ArrayType(element, _) if ArrayToTensor.takes(element) => Right(())
    case other => Left(s"the first argument is an array of numbers, but got ${other.sql}.")
  }
}

package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult.{TypeCheckFailure, TypeCheckSuccess}
import org.apache.spark.sql.catalyst.expressions.{BinaryExpression, Expression, ImplicitCastInputTypes}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.types.{DataType, IntegerType, NullType, StringType}

import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** `st_show(tensor, values)`: the dtype, the shape and the first values of a Tensor Struct as text. */
case class StShow(tensor: Expression, values: Expression) extends BinaryExpression
    with ImplicitCastInputTypes {

  override def left: Expression  = tensor
  override def right: Expression = values

  override def prettyName: String = StShow.name
  override def dataType: DataType = StringType

  override def inputTypes: Seq[DataType] = StShow.inputTypes(tensor.dataType)

  override def checkInputDataTypes(): TypeCheckResult = {
    val types = super.checkInputDataTypes()
    if (types.isFailure) types else check.fold(TypeCheckFailure(_), _ => TypeCheckSuccess)
  }

  private def check: Either[String, Unit] = for {
    _ <- StToArray.check(tensor.dataType)
    _ <- Arguments.literal(values)(count => Arguments.values(count.asInstanceOf[Int]))
  } yield ()

  @transient private lazy val text = new TensorToText

  override protected def nullSafeEval(tensor: Any, values: Any): Any =
    text(tensor.asInstanceOf[InternalRow], values.asInstanceOf[Int])

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val reference = ctx.addReferenceObj("tensorToText", text)
    nullSafeCodeGen(ctx, ev, (tensor, values) => s"${ev.value} = $reference.apply($tensor, $values);")
  }

  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): StShow =
    StShow(newLeft, newRight)
}

object StShow {
  val name: String = TensorToText.FunctionName

  /** How many values are shown if the call does not say. */
  val Values = 3

  /** The types that Spark casts the arguments to, by the type of the first. */
  private[functions] def inputTypes(tensor: DataType): Seq[DataType] =
    Seq(if (tensor == NullType) TensorStruct.dataType else tensor, IntegerType)
}

package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult.{TypeCheckFailure, TypeCheckSuccess}
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.types.{ArrayType, DataType, NullType}

import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** `st_to_array(tensor)` and its variants: decodes a Tensor Struct to the flat, row-major array of its elements. */
case class StToArray(child: Expression, elements: Elements) extends UnaryExpression {

  override def prettyName: String  = elements.function
  override def dataType: ArrayType = ArrayType(elements.dataType, containsNull = false)

  override def checkInputDataTypes(): TypeCheckResult =
    StToArray.check(child.dataType).fold(TypeCheckFailure(_), _ => TypeCheckSuccess)

  @transient private lazy val decoder = new TensorToArray(elements)

  override protected def nullSafeEval(tensor: Any): Any = decoder(tensor.asInstanceOf[InternalRow])

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val reference = ctx.addReferenceObj("tensorToArray", decoder)
    nullSafeCodeGen(ctx, ev, tensor => s"${ev.value} = $reference.apply($tensor);")
  }

  override protected def withNewChildInternal(newChild: Expression): StToArray = StToArray(newChild, elements)
}

object StToArray {

  private[functions] def check(argument: DataType): Either[String, Unit] =
    if (TensorStruct.matches(argument) || argument == NullType) Right(())
    else Left(s"the argument is a tensor, ${TensorStruct.dataType.sql}, but got ${argument.sql}.")
}

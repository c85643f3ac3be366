package io.github.semyonsinchenko.safetensors.read.conditions

import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.connector.expressions.{Expression, Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Converts Spark's predicates to conditions. A condition is exact, so Spark does not evaluate its predicate again.
 * Spark keeps predicates on tensor values, on expressions, and on types with special comparison rules.
 *
 * @param operandOf resolves the parts of a name
 */
private[read] final class Predicates(operandOf: Seq[String] => Option[Operand]) {

  /** The equivalent condition. None if Spark must evaluate the predicate. */
  def condition(predicate: Predicate): Option[Condition] = (predicate.name, predicate.children.toSeq) match {
    case ("AND", Seq(Of(left), Of(right)))   => Some(Condition.And(left, right))
    case ("OR", Seq(Of(left), Of(right)))    => Some(Condition.Or(left, right))
    case ("NOT", Seq(Of(negated)))           => Some(Condition.Not(negated))
    case ("IS_NULL", Seq(Name(operand)))     => Some(Condition.IsNull(operand))
    case ("IS_NOT_NULL", Seq(Name(operand))) => Some(Condition.Not(Condition.IsNull(operand)))
    case ("IN", Name(operand) +: values)     => in(operand, values)
    case (name, Seq(Name(operand), right))   => value(operand, right).flatMap(compared(name, operand, _))
    case _                                   => None
  }

  private def in(operand: Operand, values: Seq[Expression]): Option[Condition] = {
    val known = values.map(value(operand, _))
    Option.when(known.forall(_.isDefined))(Condition.In(operand, known.flatten.toSet))
  }

  private def compared(name: String, operand: Operand, value: Any): Option[Condition] = {
    val equal = Condition.In(operand, Set(value))
    name match {
      case "="   => Some(equal)
      case "<>"  => Some(Condition.Not(equal))
      case "<=>" => Some(Condition.And(Condition.Not(Condition.IsNull(operand)), equal))
      case _ =>
        val ordered = Sign.all.find(_.name == name && value.isInstanceOf[Comparable[_]]).map(
          Condition.Compared(operand, value, _))
        ordered.orElse(value match {
          case text: UTF8String => TextMatch.all.find(_.name == name).map(Condition.Text(operand, text, _))
          case _                => None
        })
    }
  }

  private object Of {
    def unapply(expression: Expression): Option[Condition] = expression match {
      case predicate: Predicate => condition(predicate)
      case _                    => None
    }
  }

  private object Name {
    def unapply(expression: Expression): Option[Operand] = expression match {
      case reference: NamedReference => operandOf(reference.fieldNames.toSeq)
      case _                         => None
    }
  }

  // Spark evaluates comparisons with null, with strings that have a collation, and with fractions: its two zeros are
  // equal, and so are all NaNs.
  private def value(operand: Operand, expression: Expression): Option[Any] =
    (expression, operand.dataType) match {
      case (literal: Literal[_], ArrayType(IntegerType, _)) => Option(literal.value).collect {
          case dims: ArrayData if (0 until dims.numElements()).forall(!dims.isNullAt(_)) =>
            dims.toIntArray().toVector.map(_.toLong)
        }
      case (literal: Literal[_],
            StringType | ByteType | ShortType | IntegerType | LongType | BooleanType | DateType | TimestampType) =>
        Option(literal.value).filter(_ => literal.dataType == operand.dataType)
      case _ => None
    }
}

package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.connector.expressions.{Expression, Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.format.TensorInfo

/** A condition that a header answers, without the tensor's bytes. */
private[read] trait TensorFilter extends Serializable {
  def matches(tensor: TensorInfo): Boolean
}

private[read] object TensorFilter {

  /** The same as a predicate on the columns of the layout `long`, exactly; none for one that takes more than the header. */
  def of(predicate: Predicate): Option[TensorFilter] = (predicate.name, predicate.children.toSeq) match {
    case ("AND", Seq(Condition(left), Condition(right))) =>
      Some(tensor => left.matches(tensor) && right.matches(tensor))
    case ("OR", Seq(Condition(left), Condition(right))) =>
      Some(tensor => left.matches(tensor) || right.matches(tensor))
    case ("NOT", Seq(Condition(negated)))              => Some(tensor => !negated.matches(tensor))
    case ("=" | "<=>", Seq(Text(of), Value(is)))       => Some(tensor => of(tensor) == is)
    case ("<>", Seq(Text(of), Value(is)))              => Some(tensor => of(tensor) != is)
    case ("IN", Text(of) +: Values(these))             => Some(tensor => these(of(tensor)))
    case ("STARTS_WITH", Seq(Text(of), Value(prefix))) => Some(tensor => of(tensor).startsWith(prefix))
    case ("=" | "<=>", Seq(Shape(), Dims(is)))         => Some(tensor => tensor.shape == is)
    // A header has all of them.
    case ("IS_NOT_NULL", Seq(Column())) => Some(_ => true)
    case ("IS_NULL", Seq(Column()))     => Some(_ => false)
    case _                              => None
  }

  private object Condition {
    def unapply(expression: Expression): Option[TensorFilter] = expression match {
      case predicate: Predicate => of(predicate)
      case _                    => None
    }
  }

  private def columnOf(expression: Expression): Option[String] = expression match {
    case reference: NamedReference => Some(reference.fieldNames.mkString("."))
    case _                         => None
  }

  private object Column {
    def unapply(expression: Expression): Boolean =
      columnOf(expression).exists(Set("tensor_key", "tensor", "tensor.dtype", "tensor.shape"))
  }

  /** A column of texts, as a function of the tensor. */
  private object Text {
    def unapply(expression: Expression): Option[TensorInfo => String] = columnOf(expression).collect {
      case "tensor_key"   => tensor: TensorInfo => tensor.name
      case "tensor.dtype" => tensor: TensorInfo => tensor.dtype.name
    }
  }

  private object Shape {
    def unapply(expression: Expression): Boolean = columnOf(expression).contains("tensor.shape")
  }

  // Null is no value: what it makes of a condition is left to Spark.
  private object Value {
    def unapply(expression: Expression): Option[String] = expression match {
      case literal: Literal[_] => Option(literal.value).collect { case text: UTF8String => text.toString }
      case _                   => None
    }
  }

  private object Values {
    def unapply(expressions: Seq[Expression]): Option[Set[String]] = {
      val values = expressions.map(Value.unapply)
      Option.when(values.forall(_.isDefined))(values.flatten.toSet)
    }
  }

  private object Dims {
    def unapply(expression: Expression): Option[IndexedSeq[Long]] = expression match {
      case literal: Literal[_] => Option(literal.value).collect {
          case dims: ArrayData if (0 until dims.numElements()).forall(!dims.isNullAt(_)) =>
            dims.toIntArray().toVector.map(_.toLong)
        }
      case _ => None
    }
  }
}

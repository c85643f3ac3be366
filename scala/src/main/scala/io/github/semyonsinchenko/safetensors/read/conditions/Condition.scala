package io.github.semyonsinchenko.safetensors.read.conditions

import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.index.Keys

/** A condition that files and headers decide without tensor data, with exactly the result of SQL. */
private[read] sealed trait Condition extends Product with Serializable {

  /** The result. None for SQL's UNKNOWN. */
  def decide(facts: Facts): Option[Boolean]

  def operands: Seq[Operand]

  /** Whether it can be decided before the file is opened. */
  final def isOfFile: Boolean = operands.forall(_.isInstanceOf[Operand.OfFile])

  /** The tensor names that can satisfy the condition. None if it does not restrict names. */
  def keys: Option[Keys] = None
}

private[read] object Condition {

  final case class And(left: Condition, right: Condition) extends Condition {
    override def decide(facts: Facts): Option[Boolean] = left.decide(facts) match {
      case Some(false) => Some(false)
      case known       => right.decide(facts).filter(right => !right || known.isDefined)
    }
    override def operands: Seq[Operand] = left.operands ++ right.operands
    override def keys: Option[Keys]     = (left.keys ++ right.keys).reduceOption(_.intersect(_))
  }

  final case class Or(left: Condition, right: Condition) extends Condition {
    override def decide(facts: Facts): Option[Boolean] = left.decide(facts) match {
      case Some(true) => Some(true)
      case known      => right.decide(facts).filter(right => right || known.isDefined)
    }
    override def operands: Seq[Operand] = left.operands ++ right.operands
    override def keys: Option[Keys] = left.keys.zip(right.keys).map { case (these, those) =>
      these.union(those)
    }
  }

  final case class Not(negated: Condition) extends Condition {
    override def decide(facts: Facts): Option[Boolean] = negated.decide(facts).map(!_)
    override def operands: Seq[Operand]                = negated.operands
  }

  final case class IsNull(operand: Operand) extends Condition {
    override def decide(facts: Facts): Option[Boolean] = Some(operand.value(facts) == null)
    override def operands: Seq[Operand]                = Seq(operand)
  }

  /** A comparison that needs no order. */
  final case class In(operand: Operand, values: Set[Any]) extends Condition {
    override def decide(facts: Facts): Option[Boolean] = Option(operand.value(facts)).map(values)
    override def operands: Seq[Operand]                = Seq(operand)
    override def keys: Option[Keys] =
      Option.when(operand == Operand.Key)(Keys.of(values.iterator.collect { case key: UTF8String => key }))
  }

  /** @param holds tests the sign of operand minus value */
  final case class Compared(operand: Operand, value: Any, holds: Sign) extends Condition {
    override def decide(facts: Facts): Option[Boolean] =
      Option(operand.value(facts)).map(is => holds(is.asInstanceOf[Comparable[Any]].compareTo(value)))
    override def operands: Seq[Operand] = Seq(operand)
    override def keys: Option[Keys] = (operand, value) match {
      case (Operand.Key, key: UTF8String) => Some(holds.keys(key))
      case _                              => None
    }
  }

  final case class Text(operand: Operand, part: UTF8String, at: TextMatch) extends Condition {
    override def decide(facts: Facts): Option[Boolean] =
      Option(operand.value(facts)).map(text => at(text.asInstanceOf[UTF8String], part))
    override def operands: Seq[Operand] = Seq(operand)
    override def keys: Option[Keys] =
      Option.when(operand == Operand.Key && at == TextMatch.Start)(Keys.startingWith(part))
  }
}

/**
 * An ordered comparison.
 *
 * @param test decides the comparison by the sign of the difference
 * @param keys the keys that satisfy the comparison with a given key
 */
private[read] sealed abstract class Sign(val name: String, test: Int => Boolean, val keys: UTF8String => Keys)
    extends Product
    with Serializable {
  def apply(sign: Int): Boolean = test(sign)
}

private[read] object Sign {
  case object Less    extends Sign("<", _ < 0, Keys.before(_))
  case object AtMost  extends Sign("<=", _ <= 0, Keys.upTo(_))
  case object Greater extends Sign(">", _ > 0, Keys.after(_))
  case object AtLeast extends Sign(">=", _ >= 0, Keys.from(_))
  val all: Vector[Sign] = Vector(Less, AtMost, Greater, AtLeast)
}

/** Where a string must contain another. */
private[read] sealed abstract class TextMatch(val name: String, test: (UTF8String, UTF8String) => Boolean)
    extends Product
    with Serializable {
  def apply(text: UTF8String, part: UTF8String): Boolean = test(text, part)
}

private[read] object TextMatch {
  case object Start    extends TextMatch("STARTS_WITH", _.startsWith(_))
  case object End      extends TextMatch("ENDS_WITH", _.endsWith(_))
  case object Anywhere extends TextMatch("CONTAINS", _.contains(_))
  val all: Vector[TextMatch] = Vector(Start, End, Anywhere)
}

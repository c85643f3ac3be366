package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.util.ArrayData

import io.github.semyonsinchenko.safetensors.codec.{Encoders, Rounding}
import io.github.semyonsinchenko.safetensors.format.Dtype

/** The checks of the functions' arguments, for literals at analysis and for rows. Left is the error. */
private[functions] object Arguments {

  def dtype(name: String): Either[String, Dtype] = {
    def use = s"Use one of ${Encoders.targets.mkString(", ")}."
    Dtype.of(name) match {
      case Some(dtype) if Encoders.targets.contains(dtype) => Right(dtype)
      case Some(dtype) => Left(s"numbers cannot be encoded as dtype $dtype. $use")
      case None        => Left(s"there is no dtype `$name`. $use")
    }
  }

  def rounding(name: String): Either[String, Rounding] =
    Rounding.of(name).toRight(
      s"there is no rounding `$name`. Use ${Rounding.all.map(r => s"`${r.name}`").mkString(" or ")}.")

  def shape(dims: ArrayData): Either[String, Array[Int]] = {
    def text =
      (0 until dims.numElements()).map(i => if (dims.isNullAt(i)) "null" else dims.getInt(i)).mkString(", ")
    var i = 0
    while (i < dims.numElements() && !dims.isNullAt(i) && dims.getInt(i) >= 0) i += 1
    if (i == dims.numElements()) Right(dims.toIntArray())
    else if (dims.isNullAt(i)) Left(s"the shape [$text] has a null dimension.")
    else Left(s"the shape [$text] has a negative dimension.")
  }

  /** How many values to show. */
  def values(count: Int): Either[String, Int] =
    if (count >= 0) Right(count) else Left(s"the number of values is $count. Use 0 or more.")

  /** The checked value of a literal. None for a null or another expression. */
  def literal[T](argument: Expression)(check: Any => Either[String, T]): Either[String, Option[T]] =
    (if (argument.foldable) Option(argument.eval()) else None) match {
      case Some(value) => check(value).map(Some(_))
      case None        => Right(None)
    }

  /** Checks that the shape has this many elements. */
  def count(shape: Array[Int], elements: Int): Either[String, Unit] =
    if (Arguments.elements(shape) == elements) Right(())
    else Left(s"the shape ${text(shape)} has ${product(shape)} elements, but the array has $elements.")

  /** The number of elements of a shape. Beyond 2^32 it is only known to be larger. */
  def elements(shape: Array[Int]): Long =
    if (shape.contains(0)) 0 else shape.foldLeft(1L)((n, dim) => math.min(n * dim, 1L << 32))

  def product(shape: Array[Int]): BigInt = shape.map(BigInt(_)).product

  def text(shape: Array[Int]): String = shape.mkString("[", ", ", "]")
}

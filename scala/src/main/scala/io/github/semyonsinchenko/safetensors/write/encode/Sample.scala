package io.github.semyonsinchenko.safetensors.write.encode

import io.github.semyonsinchenko.safetensors.format.Dtype

/** A sample's dtype and shape. */
private[write] final case class Sample(dtype: Dtype, shape: Seq[Int]) {

  override def toString: String = s"$dtype ${Sample.show(shape)}"
}

private[write] object Sample {

  def show(shape: Seq[Int]): String = shape.mkString("[", ", ", "]")

  /** Elements of a shape; none where they do not fit 64 bits. */
  def count(shape: Seq[Int]): Option[Long] =
    try Some(shape.foldLeft(1L)(Math.multiplyExact(_, _)))
    catch { case _: ArithmeticException => None }

  /** @throws InvalidCellException unless a cell of `count` elements can have the shape that the option gives it */
  def checkCount(count: Long, shape: Seq[Int]): Unit = {
    val expected = Sample.count(shape)
    if (!expected.contains(count)) throw new InvalidCellException(
      s"$count elements, but `shapes` gives the column ${show(shape)}, which takes ${expected.fold(
          "2^63 and more")(_.toString)}")
  }
}

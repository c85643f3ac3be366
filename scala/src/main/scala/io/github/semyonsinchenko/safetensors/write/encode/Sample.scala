package io.github.semyonsinchenko.safetensors.write.encode

import io.github.semyonsinchenko.safetensors.format.Dtype

/** The dtype and shape of a sample. */
private[write] final case class Sample(dtype: Dtype, shape: Seq[Int]) {

  override def toString: String = s"$dtype ${Sample.show(shape)}"
}

private[write] object Sample {

  def show(shape: Seq[Int]): String = shape.mkString("[", ", ", "]")

  /** The number of elements; none if it overflows 64 bits. */
  def count(shape: Seq[Int]): Option[Long] =
    try Some(shape.foldLeft(1L)(Math.multiplyExact(_, _)))
    catch { case _: ArithmeticException => None }

  /** @throws InvalidCellException unless `shape` has `count` elements */
  def checkCount(count: Long, shape: Seq[Int]): Unit = {
    val expected = Sample.count(shape)
    if (!expected.contains(count)) throw new InvalidCellException(
      s"$count elements, but `shapes` gives the column ${show(shape)}, which takes ${expected.fold(
          "2^63 and more")(_.toString)}")
  }
}

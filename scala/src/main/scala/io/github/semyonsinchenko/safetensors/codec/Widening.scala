package io.github.semyonsinchenko.safetensors.codec

/** Copies `n` values, starting at index `from`, to the start of `to`. */
private[codec] trait Widening[A] extends Serializable {
  def apply(values: A, from: Int, to: Array[Double], n: Int): Unit
}

private[codec] object Widening {

  val booleans: Widening[Array[Boolean]] = (values, from, to, n) => {
    var i = 0
    while (i < n) { to(i) = if (values(from + i)) 1 else 0; i += 1 }
  }

  val bytes: Widening[Array[Byte]] = (values, from, to, n) => {
    var i = 0
    while (i < n) { to(i) = values(from + i).toDouble; i += 1 }
  }

  val shorts: Widening[Array[Short]] = (values, from, to, n) => {
    var i = 0
    while (i < n) { to(i) = values(from + i).toDouble; i += 1 }
  }

  val ints: Widening[Array[Int]] = (values, from, to, n) => {
    var i = 0
    while (i < n) { to(i) = values(from + i).toDouble; i += 1 }
  }

  val floats: Widening[Array[Float]] = (values, from, to, n) => {
    var i = 0
    while (i < n) { to(i) = values(from + i).toDouble; i += 1 }
  }

  val doubles: Widening[Array[Double]] = (values, from, to, n) => System.arraycopy(values, from, to, 0, n)

  /** For F64, where this is the only rounding. */
  val longsToNearest: Widening[Array[Long]] = (values, from, to, n) => {
    var i = 0
    while (i < n) { to(i) = values(from + i).toDouble; i += 1 }
  }

  /** For dtypes narrower than a double, which round a second time. */
  val longsToOdd: Widening[Array[Long]] = (values, from, to, n) => {
    var i = 0
    while (i < n) { to(i) = toOdd(values(from + i)); i += 1 }
  }

  /**
   * A long as a double, rounded to odd: a second rounding to fewer bits then gives the same result as one rounding of the
   * long.
   */
  private def toOdd(value: Long): Double =
    if (math.abs(value.toDouble) < Exact || (value & Lost) == 0) value.toDouble
    else ((value & ~Lost) | (Lost + 1)).toDouble

  private final val Exact = 9007199254740992.0
  private final val Lost  = 0x7ffL
}

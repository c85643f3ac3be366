package io.github.semyonsinchenko.safetensors.format

/**
 * The order of strings as UTF-8 bytes, which is the order of code points. The official library and Parquet use it. Java
 * compares UTF-16, which differs outside the basic plane.
 */
object Utf8Order extends Ordering[String] {

  override def compare(left: String, right: String): Int = {
    val shared = math.min(left.length, right.length)
    var i      = 0
    while (i < shared && left.charAt(i) == right.charAt(i)) i += 1
    if (i == shared) left.length - right.length else rank(left.charAt(i)) - rank(right.charAt(i))
  }

  // A surrogate sorts after every character of one unit.
  private def rank(unit: Char): Int = if (Character.isSurrogate(unit)) unit + 0x10000 else unit.toInt
}

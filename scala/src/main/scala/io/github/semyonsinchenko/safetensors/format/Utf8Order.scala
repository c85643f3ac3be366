package io.github.semyonsinchenko.safetensors.format

/**
 * The order of strings as UTF-8 bytes, which is that of code points: the official library's and Parquet's. UTF-16, by which
 * Java compares, differs beyond the basic plane.
 */
object Utf8Order extends Ordering[String] {

  override def compare(left: String, right: String): Int = {
    val shared = math.min(left.length, right.length)
    var i      = 0
    while (i < shared && left.charAt(i) == right.charAt(i)) i += 1
    if (i == shared) left.length - right.length else rank(left.charAt(i)) - rank(right.charAt(i))
  }

  // A half of a surrogate pair belongs behind all characters that are one unit.
  private def rank(unit: Char): Int = if (Character.isSurrogate(unit)) unit + 0x10000 else unit.toInt
}

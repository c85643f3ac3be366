package io.github.semyonsinchenko.safetensors.common

import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * An option, declared once: the place it is read, checked and documented by.
 *
 * @param default what counts when it is not given, as the documentation shows it; none where there is no such value
 * @param doc     what it does, for the options page
 * @param verbatim whether spaces around the text are part of the value
 * @param parse   the value of a text, or what a right text would be
 */
final case class OptionSpec[A](name: String, default: Option[String], doc: String, verbatim: Boolean = false)(
    parse: String => Either[String, A]) {

  /** The option's value, or its default's; none where it has neither. */
  def get(options: CaseInsensitiveStringMap): Option[A] =
    Option(options.get(name)).orElse(default).map(text =>
      parse(if (verbatim) text else text.trim) match {
        case Right(value) => value
        case Left(expected) =>
          throw new InvalidRequestException(s"Option `$name` is `$text`: it must be $expected.")
      })
}

object OptionSpec {

  def flag(text: String): Either[String, Boolean] =
    text.toLowerCase.toBooleanOption.toRight("`true` or `false`")

  def oneOf[A](values: Seq[A])(nameOf: A => String)(text: String): Either[String, A] =
    values.find(nameOf(_).equalsIgnoreCase(text)).toRight(values.map(v => s"`${nameOf(v)}`").mkString(" or "))

  // What Spark itself puts among the options of a source, and among the properties of a table made with CREATE TABLE.
  private val sparks =
    Set("path", "paths", "provider", "location", "owner", "comment", "collation", "external",
      "is_managed_location", "table_type")

  /**
   * Refuses an option that nothing knows, so that a slip of the pen does not pass in silence. Names with a dot are
   * Hadoop's settings.
   */
  def checkNames(names: Iterable[String], known: Seq[OptionSpec[_]]): Unit = {
    val right = known.map(_.name)
    names.filterNot(_.contains('.')).foreach { name =>
      if (!sparks(name) && !right.exists(_.equalsIgnoreCase(name))) {
        val nearest = right.minBy(known => distance(known.toLowerCase, name))
        throw new InvalidRequestException(
          s"Unknown option `$name`. Did you mean `$nearest`? The options are: ${right.sorted.mkString(", ")}.")
      }
    }
  }

  /** Levenshtein's distance, over one row. */
  private def distance(a: String, b: String): Int =
    a.foldLeft((0 to b.length).toVector) { (above, char) =>
      b.indices.scanLeft(above.head + 1) { (left, i) =>
        math.min(math.min(left, above(i + 1)) + 1, above(i) + (if (b(i) == char) 0 else 1))
      }.toVector
    }.last
}

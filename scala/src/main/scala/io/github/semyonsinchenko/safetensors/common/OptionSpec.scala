package io.github.semyonsinchenko.safetensors.common

import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * An option: its name, default, check and documentation, declared in one place.
 *
 * @param default the text used when the option is not set; none if the option has no default
 * @param doc     the description for the options page
 * @param verbatim whether spaces around the text belong to the value
 * @param parse   returns the value of a text, or a description of valid texts
 */
final case class OptionSpec[A](name: String, default: Option[String], doc: String, verbatim: Boolean = false)(
    parse: String => Either[String, A]) {

  /** The option's value, or its default; none if it has neither. */
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

  // Keys that Spark adds to the options of a source and to the properties of a table from CREATE TABLE.
  private val sparks =
    Set("path", "paths", "provider", "location", "owner", "comment", "collation", "external",
      "is_managed_location", "table_type")

  /**
   * Refuses unknown options, so that a typo is not silently ignored. Names with a dot are Hadoop settings.
   */
  def checkNames(names: Iterable[String], known: Seq[OptionSpec[_]]): Unit = {
    val right = known.map(_.name)
    names.filterNot(_.contains('.')).foreach { name =>
      if (!sparks(name) && !right.exists(_.equalsIgnoreCase(name))) {
        throw new InvalidRequestException(
          s"Unknown option `$name`.${NearestName.hint(name, right)} The options are: ${right.sorted.mkString(", ")}.")
      }
    }
  }
}

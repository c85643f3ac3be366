package io.github.semyonsinchenko.safetensors

import java.nio.file.{Files, Path, Paths}

import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.common.OptionSpec
import io.github.semyonsinchenko.safetensors.read.ReadOptions
import io.github.semyonsinchenko.safetensors.write.plan.WriteOptions

class OptionsPageTest extends AnyFunSuite {

  test("docs/options.md says what the options' declarations say") {
    assert(Files.readString(OptionsPage.path) == OptionsPage.text,
      s"\nWrite the page again: ${OptionsPage.command}")
  }
}

/** The options page, made from the options' declarations; run it to write the page. */
object OptionsPage {
  val path: Path = Paths.get("docs/options.md")

  val command = s"""python project/sbt.py "tests/Test/runMain ${getClass.getName.stripSuffix("$")}""""

  def text: String = Seq(
    "# Options",
    "Names of options do not depend on case. An option that is not known is an error; names with a dot are settings " +
      s"of Hadoop.\nThis page is generated: `$command`.",
    "## Reading",
    table(ReadOptions.all),
    "## Writing",
    table(WriteOptions.all)
  ).mkString("", "\n\n", "\n")

  private def table(options: Seq[OptionSpec[_]]): String =
    ("| Option | Default | |\n|---|---|---|" +: options.map(row)).mkString("\n")

  private def row(option: OptionSpec[_]): String =
    s"| `${option.name}` | ${option.default.fold("")(value => s"`$value`")} | ${option.doc} |"

  def main(args: Array[String]): Unit = {
    Files.writeString(path, text)
    ()
  }
}

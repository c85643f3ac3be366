package io.github.semyonsinchenko.safetensors

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

/** A Scala file as text: enough to tell what it defines and what it uses. */
final class SourceFile(val path: Path) {
  import SourceFile._

  private val text = Files.readString(path)

  /** Without comments and texts, but with the expressions in interpolated ones. */
  val code: String = Texts.replaceAllIn(
    Comments.replaceAllIn(text, ""),
    found => java.util.regex.Matcher.quoteReplacement(Holes.findAllIn(found.matched).mkString(" ")))

  /** The packages of ours that it imports from, below the root package. */
  def imports: Set[String] = Imports.findAllMatchIn(code).map(_.group(1).stripSuffix(".")).toSet

  /** The classes, traits and objects at its top level. */
  val defines: Set[String] = Definitions.findAllMatchIn(code).map(_.group(1)).toSet

  val uses: Set[String] = Names.findAllMatchIn(ImportLines.replaceAllIn(code, "")).map(_.group(1)).toSet
}

object SourceFile {
  private val Comments = """(?s)/\*.*?\*/|//[^\n]*""".r
  private val Texts    = "(?s)\"\"\".*?\"\"\"|\"(?:\\\\.|[^\"\\\\\n])*\"".r
  private val Holes    = """\$\{[^}]*\}|\$\w+""".r

  private val ImportLines = """(?m)^import [^\n{]*(?:\{[^}]*\})?""".r
  private val Imports     = """(?m)^import io\.github\.semyonsinchenko\.safetensors\.((?:[a-z]\w*\.)*)""".r

  private val Definitions =
    """(?m)^(?:private(?:\[\w+\])? |final |sealed |abstract |case |implicit )*(?:class|trait|object) (\w+)""".r
  private val Names = """(?<![\w.])([A-Z]\w*)""".r
}

/** The sources of the connector. */
final class SourceTree(root: Path) {

  private val files: Map[String, Seq[SourceFile]] =
    Files.walk(root).iterator.asScala.filter(_.toString.endsWith(".scala")).map(new SourceFile(_)).toSeq
      .groupBy(file => root.relativize(file.path.getParent).toString.replace('/', '.'))

  def packages: Set[String] = files.keySet

  def in(name: String): Seq[SourceFile] = files(name)

  /** The files of a package that depend on each other in a circle; none where there is no such circle. */
  def cycle(name: String): Seq[String] = {
    val owners = in(name).flatMap(file => file.defines.map(_ -> file)).toMap
    val edges  = in(name).map(file => file -> (file.uses.flatMap(owners.get) - file)).toMap
    // Files that use none of the others are taken away, until there is none: what is left then is in a circle or leads to one.
    def reduce(left: Map[SourceFile, Set[SourceFile]]): Iterable[SourceFile] = {
      val (open, done) = left.partition(_._2.exists(left.contains))
      if (done.isEmpty) open.keys else reduce(open)
    }
    reduce(edges).map(_.path.getFileName.toString).toSeq.sorted
  }
}

object SourceTree {

  /** The name of the root package among [[SourceTree.packages]]. */
  val Root = ""

  val main = new SourceTree(Paths.get("scala/src/main/scala/io/github/semyonsinchenko/safetensors"))
}

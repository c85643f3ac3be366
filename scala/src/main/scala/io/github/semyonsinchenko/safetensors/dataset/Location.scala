package io.github.semyonsinchenko.safetensors.dataset

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException

/** The paths of a table. Spark passes them as the options `path`, `paths` (a JSON array), or both. */
object Location {
  private val mapper = new ObjectMapper

  /**
   * The paths, made absolute, because executors and the driver have different working directories.
   *
   * @throws InvalidRequestException if there is no path
   */
  def all(options: CaseInsensitiveStringMap, conf: Configuration): Seq[Path] = {
    val paths = asGiven(options)
    if (paths.isEmpty)
      throw new InvalidRequestException("No path given: name one, as in `.load(path)` or `.save(path)`.")
    paths.map(new Path(_)).map(path => path.getFileSystem(conf).makeQualified(path))
  }

  /** Whether an option or a property is the place of a table. */
  def isKey(name: String): Boolean = keys(name.toLowerCase)

  private val keys = Set("path", "paths", "location")

  def asGiven(options: CaseInsensitiveStringMap): Seq[String] = {
    val several = Option(options.get("paths")).toSeq.flatMap(mapper.readValue(_, classOf[Array[String]]))
    several ++ Option(options.get("path")).orElse(Option(options.get("location")))
  }

  def one(options: CaseInsensitiveStringMap, conf: Configuration): Path = all(options, conf) match {
    case Seq(path) => path
    case paths =>
      throw new InvalidRequestException(s"A dataset is one directory, but ${paths.size} paths were given.")
  }
}

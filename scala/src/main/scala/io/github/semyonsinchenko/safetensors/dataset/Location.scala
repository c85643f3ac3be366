package io.github.semyonsinchenko.safetensors.dataset

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException

/** Where a table lies, by the options that Spark hands over: `path`, or `paths` as a JSON array, or both. */
object Location {
  private val mapper = new ObjectMapper

  /**
   * The paths as absolute ones: executors have working directories of their own, where a relative path leads elsewhere.
   *
   * @throws InvalidRequestException if there is none
   */
  def all(options: CaseInsensitiveStringMap, conf: Configuration): Seq[Path] = {
    val paths = asGiven(options)
    if (paths.isEmpty)
      throw new InvalidRequestException("No path given: name one, as in `.load(path)` or `.save(path)`.")
    paths.map(new Path(_)).map(path => path.getFileSystem(conf).makeQualified(path))
  }

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

package io.github.semyonsinchenko.safetensors.dataset

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Where a table lies, by the options that Spark hands over: `path`, or `paths` as a JSON array, or both. */
object Location {
  private val mapper = new ObjectMapper

  def all(options: CaseInsensitiveStringMap): Seq[Path] = {
    val several =
      Option(options.get("paths")).toSeq.flatMap(json => mapper.readValue(json, classOf[Array[String]]))
    val paths = several ++ Option(options.get("path")).orElse(Option(options.get("location")))
    if (paths.isEmpty)
      throw new InvalidRequestException("No path given: name one, as in `.load(path)` or `.save(path)`.")
    paths.map(new Path(_))
  }

  def one(options: CaseInsensitiveStringMap): Path = all(options) match {
    case Seq(path) => path
    case paths =>
      throw new InvalidRequestException(s"A dataset is one directory, but ${paths.size} paths were given.")
  }
}

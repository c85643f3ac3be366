package io.github.semyonsinchenko.safetensors.dataset

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.format.TensorInfo

/**
 * `model.safetensors.index.json`: which tensor of a checkpoint is in which of its files, as Hugging Face's libraries write it.
 *
 * @param name       of the index file
 * @param weightMap  the file of each tensor
 */
private[dataset] final case class CheckpointIndex(name: String, weightMap: Map[String, String]) {

  /** The files, by name. */
  def files: Vector[String] = weightMap.values.toSet.toVector.sorted

  def index: DirectoryIndex = (keys: Option[Keys], _: (String, TensorInfo) => Boolean, _: Configuration) =>
    keys.map(wanted =>
      weightMap.iterator.collect {
        case (key, file) if wanted.contain(key) => file -> Located.Somewhere
      }.toMap)
}

private[dataset] object CheckpointIndex {
  private val mapper = new ObjectMapper

  def isOne(path: Path): Boolean =
    path.getName.endsWith(".safetensors.index.json") && !DataFile.isHidden(path)

  /** @throws InvalidRequestException if it is none, or names a file elsewhere */
  def read(path: Path, conf: Configuration): CheckpointIndex = {
    def fault(detail: String) = throw new InvalidRequestException(
      s"$path is not a valid checkpoint index: $detail. Mend it, or name the safetensors files themselves as the paths.")
    def file(entry: java.util.Map.Entry[String, JsonNode]) = {
      val name = entry.getValue.asText
      if (!entry.getValue.isTextual || !DataFile.isPlainName(name))
        fault(s"tensor `${entry.getKey}` is in ${entry.getValue}, which is not a file name in its directory")
      entry.getKey -> name
    }
    val bytes =
      AtomicFile.read(path, path.getFileSystem(conf)).getOrElse(throw DatasetFiles.absent(path))
    val weights =
      try mapper.readTree(bytes).path("weight_map")
      catch { case e: JsonProcessingException => fault(e.getOriginalMessage) }
    if (!weights.isObject) fault("it has no object `weight_map`")
    CheckpointIndex(path.getName, weights.properties.asScala.map(file).toMap)
  }
}

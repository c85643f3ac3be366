package io.github.semyonsinchenko.safetensors.dataset

import java.io.{CharConversionException, InputStream}
import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.common.{InvalidRequestException, NoDataException}
import io.github.semyonsinchenko.safetensors.format.{InvalidFileException, TensorInfo}
import io.github.semyonsinchenko.safetensors.index.Keys
import io.github.semyonsinchenko.safetensors.storage.{AtomicFile, FileNames}

/**
 * `model.safetensors.index.json`, which Hugging Face's libraries write: the file of each tensor of a checkpoint.
 *
 * @param name       the name of the index file
 * @param weightMap  the file of each tensor; a look-up by name relies on it alone
 */
private[dataset] final case class CheckpointIndex(name: String, weightMap: Map[String, String])
    extends DirectoryIndex {

  /** The files, sorted by name. */
  def files: Vector[String] = weightMap.values.toSet.toVector.sorted

  private lazy val tensors =
    weightMap.toSeq.groupMap(_._2)(_._1).map { case (file, names) => file -> names.toSet }

  def tensorsOf(file: String): Set[String] = tensors(file)

  override def find(
      keys: Option[Keys],
      accepts: (String, TensorInfo) => Boolean,
      conf: Configuration): Option[Map[String, Located]] =
    keys.map(wanted =>
      weightMap.iterator.collect {
        case (key, file) if wanted.contain(key.getBytes(UTF_8)) => file -> Located.Somewhere
      }.toMap)

  override def firstFile(conf: Configuration): Option[String] = None
}

private[dataset] object CheckpointIndex {
  private val mapper = new ObjectMapper

  private val Name = """.+\.safetensors\.index(\.[^.]+)?\.json""".r

  def isOne(path: Path): Boolean = Name.matches(path.getName) && !FileNames.isHidden(path)

  /** Whether it describes a variant of the weights, such as `model.safetensors.index.fp16.json`. */
  def isVariant(path: Path): Boolean = !path.getName.endsWith(".index.json")

  /** @throws InvalidRequestException if the file is not a valid index, or names a file outside its directory */
  def read(path: Path, conf: Configuration): CheckpointIndex = {
    def fault(detail: String) = throw new InvalidRequestException(
      s"$path is not a valid checkpoint index: ${InvalidFileException.shortened(detail)}. Correct it, or pass the " +
        "safetensors files as the paths.")
    def file(entry: java.util.Map.Entry[String, JsonNode]) = {
      val name = entry.getValue.asText
      if (!entry.getValue.isTextual || !FileNames.isPlain(name))
        fault(s"tensor `${entry.getKey}` is in ${entry.getValue}, which is not a file name in its directory")
      entry.getKey -> name
    }
    val fs = path.getFileSystem(conf)
    // A stream: the file may be larger than memory, and no JSON.
    def parse(in: InputStream) =
      try mapper.readTree(in).path("weight_map")
      catch {
        case e: JsonProcessingException => fault(e.getOriginalMessage)
        // Zeros look like UTF-32 to the parser.
        case e: CharConversionException => fault(e.getMessage)
      }
    val weights = AtomicFile.use(path, fs)(parse).getOrElse(throw NoDataException.at(path))
    if (!weights.isObject || weights.isEmpty) fault("it has no object `weight_map` with the files of tensors")
    CheckpointIndex(path.getName, weights.properties.asScala.map(file).toMap)
  }
}

package io.github.semyonsinchenko.safetensors.mlflow

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.dataset.Manifest

/** A dataset as the source of one of MLflow's; the same that `safetensors_spark.mlflow` logs from Python. */
final class SafetensorsDatasetSource private (directory: Path, manifest: Manifest) {

  /** The source that MLflow keeps, for its type `SafetensorsDatasetSource.SourceType`. */
  def toJson(): String = {
    val root = SafetensorsDatasetSource.mapper.createObjectNode()
      .put("uri", SafetensorsDatasetSource.uri(new Path(directory, Manifest.FileName)))
      .put("commit_id", manifest.commitId)
      .put("total_samples", manifest.samples)
      .put("total_bytes", manifest.bytes)
      .put("shards", manifest.shards.size)
    SafetensorsDatasetSource.mapper.writeValueAsString(root)
  }
}

object SafetensorsDatasetSource {

  /** By which MLflow finds who reads the JSON. */
  val SourceType = "safetensors"

  private val mapper = new ObjectMapper

  /**
   * The dataset that was written to `path`.
   *
   * @throws java.io.FileNotFoundException if there is no manifest
   */
  def apply(path: String, conf: Configuration): SafetensorsDatasetSource = {
    val folder    = new Path(path)
    val directory = folder.getFileSystem(conf).makeQualified(folder)
    Manifest.read(directory, conf) match {
      case Some(manifest) => new SafetensorsDatasetSource(directory, manifest)
      case None => throw new FileNotFoundException(
          s"$directory has no ${Manifest.FileName}: it is no dataset that was written by " +
            "`df.write.format(\"safetensors\")`, or the write did not end."
        )
    }
  }

  /** Of a path here a percent-encoded URI, as MLflow's Python reads them; Hadoop's and fsspec's paths are not encoded. */
  private def uri(path: Path): String =
    if (path.toUri.getScheme == "file") s"file://${encoded(path.toUri.getPath)}" else path.toString

  private def encoded(path: String): String =
    path.getBytes(UTF_8).map(byte => if (isPlain(byte)) byte.toChar.toString else f"%%$byte%02X").mkString

  private def isPlain(byte: Byte): Boolean =
    byte >= 0 && (byte.toChar.isLetterOrDigit || "/-._~".indexOf(byte.toInt) >= 0)
}

package io.github.semyonsinchenko.safetensors.mlflow

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.dataset.Manifest

/** A dataset as an MLflow dataset source. The JSON equals what `safetensors_spark.mlflow` logs from Python. */
final class SafetensorsDatasetSource private (directory: Path, manifest: Manifest) {

  /** The source for MLflow, of the type `SafetensorsDatasetSource.SourceType`. */
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

  /** The source type by which MLflow finds the class that reads the JSON. */
  val SourceType = "safetensors"

  private val mapper = new ObjectMapper

  /**
   * The source of the dataset at `path`.
   *
   * @throws java.io.FileNotFoundException if it has no manifest
   */
  def apply(path: String, conf: Configuration): SafetensorsDatasetSource = {
    val folder    = new Path(path)
    val directory = folder.getFileSystem(conf).makeQualified(folder)
    Manifest.read(directory, conf) match {
      case Some(manifest) => new SafetensorsDatasetSource(directory, manifest)
      case None => throw new FileNotFoundException(
          s"$directory has no ${Manifest.FileName}: it is not a dataset written by " +
            "`df.write.format(\"safetensors\")`, or the write did not finish."
        )
    }
  }

  // `user:password@` of a URL. A name alone is part of the address, as in `abfs://container@account`.
  private val userAndPassword = "(?<=://)[^/@:]*:[^/@]*@".r

  /** A percent-encoded URI for local paths, as MLflow's Python expects. Other paths stay as Hadoop and fsspec have them. */
  private[mlflow] def uri(path: Path): String =
    if (path.toUri.getScheme == "file") s"file://${encoded(path.toUri.getPath)}"
    else userAndPassword.replaceFirstIn(path.toString, "")

  private def encoded(path: String): String =
    path.getBytes(UTF_8).map(byte => if (isPlain(byte)) byte.toChar.toString else f"%%$byte%02X").mkString

  private def isPlain(byte: Byte): Boolean =
    byte >= 0 && (byte.toChar.isLetterOrDigit || "/-._~".indexOf(byte.toInt) >= 0)
}

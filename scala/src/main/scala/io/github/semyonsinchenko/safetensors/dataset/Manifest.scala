package io.github.semyonsinchenko.safetensors.dataset

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.common.{DataException, FormatVersion}
import io.github.semyonsinchenko.safetensors.index.IndexPart
import io.github.semyonsinchenko.safetensors.storage.{AtomicFile, FileNames}

/**
 * One shard of a dataset.
 *
 * @param file        its name in the dataset's directory
 * @param samples     rows in it, padding not counted
 * @param bytes       the file's length
 * @param headerBytes where the byte buffer begins
 * @param crc32c      checksum of the whole file
 */
final case class ShardRecord(file: String, samples: Long, bytes: Long, headerBytes: Long, crc32c: Int)

/** A tensor column as it was written; shape is per sample, and absent where rows differ or there were none. */
final case class ColumnRecord(name: String, dtype: Option[String], shape: Option[Seq[Int]])

/**
 * What a manifest says of a shard.
 *
 * @param headerBytes where its byte buffer begins
 * @param samples     rows in it, padding not counted; none where its tensors are rows by themselves
 * @param tensors     how many tensors it has
 * @param columns     its tensors, with the shape of a sample; empty where the tensors are named by keys
 */
final case class ShardFacts(
    headerBytes: Long,
    samples: Option[Long],
    tensors: Long,
    columns: Seq[ColumnRecord])

/**
 * `dataset_manifest.json`: what a dataset is made of, as `format/dataset_manifest.schema.json` describes it.
 *
 * @param commitId of the write that made this manifest
 * @param mode     how writes put rows into tensors: `Manifest.BatchMode` or `Manifest.KeyValueMode`
 * @param options  the options of the last write, as given
 * @param shards   in the order of the rows
 * @param parts    files of the index, of which the largest is the first; none in a manifest of version 1.0
 * @param version  of the format that the manifest was read in
 */
final case class Manifest(
    commitId: String,
    mode: String,
    options: Map[String, String],
    schema: Seq[ColumnRecord],
    shards: Seq[ShardRecord],
    parts: Option[Seq[IndexPart]] = Some(Nil),
    version: FormatVersion = FormatVersion.Current) {

  /** The files of the index. They may not be there: then there is no index. */
  def indexParts: Seq[IndexPart] = parts.getOrElse(Seq(IndexPart.only(commitId)))

  /** The names of all its files. */
  def files: Seq[String] = shards.map(_.file) ++ indexParts.map(_.file)

  def samples: Long = shards.iterator.map(_.samples).sum

  def bytes: Long = shards.iterator.map(_.bytes).sum

  /** What a reader may rely on of a shard. */
  def factsOf(shard: ShardRecord): ShardFacts = {
    val isBatch = mode == Manifest.BatchMode
    // Each column is one tensor of a batch, or one of each row.
    val tensors = if (isBatch) schema.size.toLong else shard.samples * schema.size
    ShardFacts(shard.headerBytes, Option.when(isBatch)(shard.samples), tensors, if (isBatch) schema else Nil)
  }

  def toJson: String = ManifestJson.write(this)

  /** Puts this manifest in the place of the directory's old one, if it has one. */
  def write(directory: Path, conf: Configuration): Unit =
    AtomicFile.write(new Path(directory, Manifest.FileName), toJson, conf)
}

object Manifest {

  val FileName = "dataset_manifest.json"

  val BatchMode    = "batch"
  val KeyValueMode = "key_value"

  /**
   * The manifest of the dataset in `directory`, or none if there is no dataset.
   *
   * @throws UnsupportedVersionException if its format is newer than this connector
   * @throws InvalidManifestException if it is damaged
   */
  def read(directory: Path, conf: Configuration): Option[Manifest] = {
    val path = new Path(directory, FileName)
    AtomicFile.read(path, path.getFileSystem(conf)).map(ManifestJson.read(_, path))
  }

  def delete(directory: Path, conf: Configuration): Unit = {
    val path = new Path(directory, FileName)
    path.getFileSystem(conf).delete(path, false)
    ()
  }
}

/** A manifest that cannot be relied on. */
final class InvalidManifestException(path: Path, detail: String)
    extends DataException(
      s"$path is not a valid dataset manifest: $detail. Overwrite the dataset, or remove the file to read " +
        "the directory's safetensors files as they are.",
      "SAFETENSORS_INVALID_MANIFEST"
    )

private object ManifestJson {
  private val mapper = new ObjectMapper

  def write(manifest: Manifest): String = {
    val root = mapper.createObjectNode()
      .put("format_version", FormatVersion.Current.toString)
      .put("safetensors_version", "1.0")
      .put("total_samples", manifest.samples)
      .put("total_bytes", manifest.bytes)
    val shards = root.putArray("shards")
    manifest.shards.foreach(shard => writeShard(shard, shards.addObject()))
    root.put("commit_id", manifest.commitId).put("mode", manifest.mode)
    val options = root.putObject("options")
    manifest.options.toSeq.sorted.foreach { case (name, value) => options.put(name, value) }
    val schema = root.putArray("schema")
    manifest.schema.foreach(column => writeColumn(column, schema.addObject()))
    val parts = root.putArray("index_parts")
    manifest.indexParts.foreach(part =>
      parts.addObject().put("file", part.file).put("commit_id", part.commitId))
    mapper.writerWithDefaultPrettyPrinter().writeValueAsString(root)
  }

  private def writeShard(shard: ShardRecord, node: ObjectNode): Unit = {
    node.put("file", shard.file).put("samples_count", shard.samples).put("bytes", shard.bytes)
    node.put("header_bytes", shard.headerBytes).put("crc32c", f"${shard.crc32c}%08x")
    ()
  }

  private def writeColumn(column: ColumnRecord, node: ObjectNode): Unit = {
    node.put("name", column.name).put("dtype", column.dtype.orNull)
    column.shape match {
      case Some(shape) => val array = node.putArray("shape"); shape.foreach(array.add(_))
      case None        => node.putNull("shape")
    }
    ()
  }

  def read(bytes: Array[Byte], path: Path): Manifest = {
    val root =
      try mapper.readTree(bytes)
      catch {
        case e: JsonProcessingException => throw new InvalidManifestException(path, e.getOriginalMessage)
      }
    val fields = new Fields(path)
    // Checked first: a newer version may have other fields.
    val version = fields.version(root, "format_version")
    version.checkReadable(path)
    Manifest(
      fields.text(root, "commit_id"),
      fields.text(root, "mode"),
      fields.node(root, "options").properties.asScala.map(e => e.getKey -> e.getValue.asText).toMap,
      fields.node(root, "schema").elements.asScala.map(readColumn(_, fields)).toVector,
      fields.node(root, "shards").elements.asScala.map(readShard(_, fields)).toVector,
      Option(root.get("index_parts")).map(_.elements.asScala.map(readPart(_, fields)).toVector),
      version
    )
  }

  private def readShard(node: JsonNode, fields: Fields): ShardRecord = ShardRecord(
    fields.fileName(node, "file"),
    fields.count(node, "samples_count"),
    fields.count(node, "bytes"),
    fields.count(node, "header_bytes"),
    fields.checksum(node, "crc32c")
  )

  private def readPart(node: JsonNode, fields: Fields): IndexPart =
    IndexPart(fields.fileName(node, "file"), fields.text(node, "commit_id"))

  private def readColumn(node: JsonNode, fields: Fields): ColumnRecord = ColumnRecord(
    fields.text(node, "name"),
    Option(node.get("dtype")).filter(_.isTextual).map(_.asText),
    Option(node.get("shape")).filter(_.isArray).map(_.elements.asScala.map(_.asInt).toVector)
  )

  /** Fields that must be there. */
  private final class Fields(path: Path) {
    private def fault(detail: String) = throw new InvalidManifestException(path, detail)

    def node(parent: JsonNode, name: String): JsonNode = {
      val node = parent.get(name)
      if (node == null || node.isNull) fault(s"it has no `$name`")
      node
    }

    def text(parent: JsonNode, name: String): String = node(parent, name).asText

    def version(parent: JsonNode, name: String): FormatVersion = {
      val found = text(parent, name)
      FormatVersion.parse(found).getOrElse(fault(s"its format version is `$found`, expected MAJOR.MINOR"))
    }

    def count(parent: JsonNode, name: String): Long = {
      val number = node(parent, name)
      if (!number.canConvertToLong || number.asLong < 0) fault(s"`$name` is `$number`, expected a count")
      number.asLong
    }

    def checksum(parent: JsonNode, name: String): Int = {
      val hex = text(parent, name)
      if (!hex.matches("[0-9a-f]{8}")) fault(s"`$name` is `$hex`, expected 8 hex digits")
      Integer.parseUnsignedInt(hex, 16)
    }

    /** A name in this directory: a manifest must not lead a reader elsewhere. */
    def fileName(parent: JsonNode, name: String): String = {
      val file = text(parent, name)
      if (!FileNames.isPlain(file))
        fault(s"the file `$file` is not a file name in its directory")
      file
    }
  }
}

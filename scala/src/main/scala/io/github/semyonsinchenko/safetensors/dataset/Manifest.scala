package io.github.semyonsinchenko.safetensors.dataset

import java.io.{CharConversionException, InputStream, OutputStream}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.{
  JsonEncoding,
  JsonFactory,
  JsonGenerator,
  JsonParser,
  JsonProcessingException,
  JsonToken
}
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.common.{DataException, FormatVersion}
import io.github.semyonsinchenko.safetensors.format.InvalidFileException
import io.github.semyonsinchenko.safetensors.index.IndexPart
import io.github.semyonsinchenko.safetensors.storage.{AtomicFile, ConditionalWrite}

/**
 * `dataset_manifest.json`, which lists the contents of a dataset. `format/dataset_manifest.schema.json` defines it.
 *
 * @param commitId ID of the write that created this manifest
 * @param options  the options of the last write, as the user gave them
 * @param shards   the shards in row order
 * @param parts    the files of the index, the largest first; none in a manifest of version 1.0
 * @param keyPlace the number of columns before that of the keys, in the rows that were written; none if it is not known
 * @param version  the format version of the manifest that was read
 */
final case class Manifest(
    commitId: String,
    mode: DatasetMode,
    options: Map[String, String],
    schema: Seq[ColumnRecord],
    shards: Seq[ShardRecord],
    parts: Option[Seq[IndexPart]] = Some(Nil),
    keyPlace: Option[Int] = None,
    version: FormatVersion = FormatVersion.Fixed) {

  /** The files of the index. If one does not exist, the dataset has no index. */
  def indexParts: Seq[IndexPart] = parts.getOrElse(Seq(IndexPart.only(commitId)))

  /** The names of all files of the dataset. */
  def files: Iterator[String] = shards.iterator.map(_.file) ++ indexParts.iterator.map(_.file)

  def samples: Long = shards.iterator.map(_.samples).sum

  def bytes: Long = shards.iterator.map(_.bytes).sum

  /** The facts about a shard that a reader can rely on. */
  def factsOf(shard: ShardRecord): ShardFacts = {
    // Each column is one tensor per row, or one or two per batch.
    mode match {
      case DatasetMode.Batch =>
        ShardFacts(shard.headerBytes, Some(shard.samples), schema.map(_.tensors.size.toLong).sum, schema)
      case DatasetMode.KeyValue =>
        ShardFacts(shard.headerBytes, None, shard.samples * schema.size, Nil, shard.bucket)
    }
  }

  /** The names of the ragged columns. */
  def ragged: Seq[String] = schema.filter(_.kind == ColumnKind.Ragged).map(_.name)

  /** The number of key buckets. None if the shards do not all have the same number. */
  def keyBuckets: Option[Int] = KeyBucket.countOf(shards.iterator.map(_.bucket))

  /** Creates or replaces the manifest of the directory. */
  def write(directory: Path, conf: Configuration): Unit =
    AtomicFile.write(new Path(directory, Manifest.FileName), conf)(ManifestWriter.write(this, _))

  /** Replaces the manifest while other writes may do the same. See [[AtomicFile.replace]]. */
  def replace(directory: Path, draft: Path, condition: ConditionalWrite, conf: Configuration)(
      verify: => Unit): Unit =
    AtomicFile.replace(new Path(directory, Manifest.FileName), draft, condition, conf)(
      ManifestWriter.write(this, _))(verify)
}

object Manifest {

  val FileName = "dataset_manifest.json"

  /**
   * The manifest of the dataset in `directory`, or none if there is no dataset.
   *
   * @throws UnsupportedVersionException if its format is newer than this connector
   * @throws InvalidManifestException if it is damaged
   */
  def read(directory: Path, conf: Configuration): Option[Manifest] = {
    val path = new Path(directory, FileName)
    AtomicFile.use(path, path.getFileSystem(conf))(new ManifestReader(path).read(_))
  }

  /** A condition that the manifest does not change from now on. Call it before reading the manifest. */
  def unchanged(directory: Path, conf: Configuration): ConditionalWrite = {
    val path = new Path(directory, FileName)
    ConditionalWrite.ifUnchanged(path, path.getFileSystem(conf))
  }

  def delete(directory: Path, conf: Configuration): Unit = {
    val path = new Path(directory, FileName)
    path.getFileSystem(conf).delete(path, false)
    ()
  }
}

/** A manifest is invalid. */
final class InvalidManifestException(path: Path, detail: String)
    extends DataException(
      s"$path is not a valid dataset manifest: ${InvalidFileException.shortened(detail)}. Overwrite the dataset, or remove " +
        "the file to read the directory's safetensors files as they are.",
      "SAFETENSORS_INVALID_MANIFEST"
    )

private object ManifestWriter {
  // The owner of the stream closes it. In an object store, closing makes the file visible.
  private val factory = new JsonFactory().disable(JsonGenerator.Feature.AUTO_CLOSE_TARGET)

  def write(manifest: Manifest, out: OutputStream): Unit = {
    val json = factory.createGenerator(out, JsonEncoding.UTF8)
    json.setPrettyPrinter(new DefaultPrettyPrinter().withObjectIndenter(Lines).withArrayIndenter(Lines))
    json.writeStartObject()
    json.writeStringField("format_version", versionOf(manifest).toString)
    json.writeStringField("safetensors_version", "1.0")
    json.writeNumberField("total_samples", manifest.samples)
    json.writeNumberField("total_bytes", manifest.bytes)
    json.writeFieldName("shards")
    ShardsWriter.write(manifest.shards, json)
    json.writeStringField("commit_id", manifest.commitId)
    json.writeStringField("mode", manifest.mode.name)
    manifest.keyPlace.foreach(json.writeNumberField("key_place", _))
    json.writeObjectFieldStart("options")
    manifest.options.toSeq.sorted.foreach { case (name, value) => json.writeStringField(name, value) }
    json.writeEndObject()
    json.writeArrayFieldStart("schema")
    manifest.schema.foreach(writeColumn(_, json))
    json.writeEndArray()
    json.writeArrayFieldStart("index_parts")
    manifest.indexParts.foreach(writePart(_, json))
    json.writeEndArray()
    json.writeEndObject()
    json.close()
  }

  private def versionOf(manifest: Manifest): FormatVersion =
    if (manifest.schema.forall(_.kind == ColumnKind.Fixed)) FormatVersion.Fixed else FormatVersion.Kinds

  private def writePart(part: IndexPart, json: JsonGenerator): Unit = {
    json.writeStartObject()
    json.writeStringField("file", part.file)
    json.writeStringField("commit_id", part.commitId)
    json.writeEndObject()
  }

  private def writeColumn(column: ColumnRecord, json: JsonGenerator): Unit = {
    json.writeStartObject()
    json.writeStringField("name", column.name)
    json.writeStringField("dtype", column.dtype.orNull)
    json.writeFieldName("shape")
    column.shape.fold(json.writeNull())(shape => json.writeArray(shape.toArray, 0, shape.size))
    if (column.kind != ColumnKind.Fixed) json.writeStringField("kind", column.kind.name)
    column.sparkType.foreach(json.writeStringField("type", _))
    json.writeEndObject()
  }

  /** Writes one line per field and per shard. */
  private object Lines extends DefaultPrettyPrinter.Indenter {
    override def isInline: Boolean = false

    override def writeIndentation(json: JsonGenerator, level: Int): Unit =
      if (level > 2) json.writeRaw(' ') else json.writeRaw(breaks(level))
  }

  private val breaks = Array("\n", "\n  ", "\n    ")
}

/**
 * Reads and checks a manifest.
 *
 * @param path for error messages
 */
private final class ManifestReader(path: Path) {
  import ManifestReader.mapper

  /** @throws InvalidManifestException if the manifest is invalid */
  def read(in: InputStream): Manifest =
    try read(mapper.getFactory.createParser(in))
    catch {
      case e: JsonProcessingException => fault(e.getOriginalMessage)
      // Zeros look like UTF-32 to the parser.
      case e: CharConversionException => fault(e.getMessage)
    }

  private def read(json: JsonParser): Manifest = {
    val root   = mapper.createObjectNode()
    var shards = Option.empty[Vector[ShardRecord]]
    if (json.nextToken() != JsonToken.START_OBJECT) fault("it is not a JSON object")
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      val name = json.getText
      json.nextToken()
      if (name == "shards") {
        // Checks the version first, because shards of a newer version may have other fields.
        if (root.has(Version)) checkVersion(root)
        shards = Some(new ShardsReader(fault(_)).read(json))
      } else root.set[JsonNode](name, mapper.readTree[JsonNode](json))
    }
    manifest(root, shards)
  }

  private def manifest(root: ObjectNode, shards: Option[Vector[ShardRecord]]): Manifest = {
    val version = checkVersion(root)
    val manifest = Manifest(
      text(root, "commit_id"),
      mode(text(root, "mode")),
      node(root, "options").properties.asScala.map(e => e.getKey -> e.getValue.asText).toMap,
      list(root, "schema").elements.asScala.map(column).toVector,
      shards.getOrElse(absent("shards")),
      Option(root.get("index_parts")).map(_ => parts(list(root, "index_parts"))),
      Option(root.get("key_place")).map(keyPlace(_, list(root, "schema").size)),
      version
    )
    check(manifest)
    manifest
  }

  // Counts of rows are answered from these numbers.
  private def check(manifest: Manifest): Unit = {
    if (manifest.shards.nonEmpty && manifest.schema.isEmpty)
      fault("it has shards, but no columns in `schema`")
    if (manifest.mode == DatasetMode.KeyValue)
      manifest.schema.find(_.kind != ColumnKind.Fixed).foreach(column =>
        fault(s"column `${column.name}` is ${column.kind.name}, which only columns of batches are"))
    try {
      val samples = manifest.shards.iterator.map(_.samples).foldLeft(0L)(Math.addExact)
      Math.multiplyExact(samples, math.max(manifest.schema.size, 1).toLong)
      manifest.shards.iterator.map(_.bytes).foldLeft(0L)(Math.addExact)
      ()
    } catch { case _: ArithmeticException => fault("the sums of `samples_count` or `bytes` are too large") }
  }

  private def checkVersion(root: JsonNode): FormatVersion = {
    val found = text(root, Version)
    val version =
      FormatVersion.parse(found).getOrElse(fault(s"its format version is `$found`, expected MAJOR.MINOR"))
    version.checkReadable(path, FormatVersion.ofManifests)
    version
  }

  private def mode(name: String): DatasetMode =
    DatasetMode.all.find(_.name == name).getOrElse(
      fault(
        s"its mode is `$name`, expected ${DatasetMode.all.map(mode => s"`${mode.name}`").mkString(" or ")}"))

  private def parts(node: JsonNode): Vector[IndexPart] = {
    val found = node.elements.asScala.map(part).toVector
    found.diff(found.distinctBy(_.file)).headOption.foreach(again =>
      fault(s"it names the index part `${again.file}` twice"))
    found
  }

  private def part(node: JsonNode): IndexPart = {
    val file = text(node, "file")
    if (!IndexPart.isName(file))
      fault(
        s"the index part `$file` is not named `${IndexPart.OnlyFile}` or `_tensor_index-{commit_id}.parquet`")
    IndexPart(file, text(node, "commit_id"))
  }

  private def keyPlace(node: JsonNode, columns: Int): Int = {
    if (!node.isInt || node.asInt < 0 || node.asInt > columns)
      fault(s"`key_place` is `$node`, expected a number from 0 to $columns")
    node.asInt
  }

  private def column(node: JsonNode): ColumnRecord = ColumnRecord(
    text(node, "name"),
    Option(node.get("dtype")).filter(_.isTextual).map(_.asText),
    Option(node.get("shape")).filter(_.isArray).map(_.elements.asScala.map(_.asInt).toVector),
    Option(node.get("kind")).fold[ColumnKind](ColumnKind.Fixed)(_ => kind(text(node, "kind"))),
    Option(node.get("type")).map(_ => text(node, "type"))
  )

  private def kind(name: String): ColumnKind = ColumnKind.all.find(_.name == name).getOrElse(
    fault(s"the kind of a column is `$name`, expected one of ${ColumnKind.all.map(_.name).mkString(", ")}"))

  private def text(parent: JsonNode, name: String): String = {
    val found = node(parent, name)
    if (!found.isTextual) fault(s"`$name` is `$found`, expected a string")
    found.asText
  }

  private def list(parent: JsonNode, name: String): JsonNode = {
    val found = node(parent, name)
    if (!found.isArray) fault(s"`$name` is `$found`, expected a list")
    found
  }

  private def node(parent: JsonNode, name: String): JsonNode =
    Option(parent.get(name)).filterNot(_.isNull).getOrElse(absent(name))

  private def absent(name: String): Nothing = fault(s"it has no `$name`")

  private def fault(detail: String): Nothing = throw new InvalidManifestException(path, detail)

  private def Version = "format_version"
}

private object ManifestReader {
  private val mapper = new ObjectMapper
}

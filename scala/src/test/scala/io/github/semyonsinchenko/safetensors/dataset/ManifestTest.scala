package io.github.semyonsinchenko.safetensors.dataset

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path => LocalPath}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.common.{FormatVersion, UnsupportedVersionException}
import io.github.semyonsinchenko.safetensors.index.IndexPart
import io.github.semyonsinchenko.safetensors.storage.UnreadableFileException

class ManifestTest extends AnyFunSuite {
  private val conf = new Configuration

  private val manifest = Manifest(
    "7f4",
    DatasetMode.Batch,
    Map("batch_size" -> "2"),
    Seq(ColumnRecord("x", Some("F32"), Some(Seq(3, 4))), ColumnRecord("y", None, None)),
    Seq(ShardRecord("part-0.safetensors", 2, 100, 80, 0xffffffff),
      ShardRecord("part-1.safetensors", 1, 90, 80, 1))
  )

  private def toJson: String = {
    val out = new ByteArrayOutputStream
    ManifestWriter.write(manifest, out)
    out.toString(UTF_8)
  }

  private def read(directory: LocalPath) = Manifest.read(new Path(directory.toUri), conf)

  test("what is written is read again, with the sums") {
    TempDir { directory =>
      manifest.write(new Path(directory.toUri), conf)
      assert(read(directory).contains(manifest))
      val json = Files.readString(directory.resolve("dataset_manifest.json"))
      assert(json.contains("\"total_samples\" : 3") && json.contains("\"total_bytes\" : 190"))
      assert(json.contains("\"crc32c\" : \"ffffffff\""))
    }
  }

  test("the parts of the index are read again; without that field, there is one of the manifest's commit") {
    TempDir { directory =>
      val parts = Seq(IndexPart.only("6e3"), IndexPart(IndexPart.nameOf(UUID.randomUUID()), "7f4"))
      manifest.copy(parts = Some(parts)).write(new Path(directory.toUri), conf)
      assert(read(directory).map(_.indexParts).contains(parts))
      val old = toJson.replaceAll(",\\s*\"index_parts\" : \\[[^]]*\\]", "")
      Files.writeString(directory.resolve("dataset_manifest.json"), old)
      assert(read(directory).map(_.indexParts).contains(Seq(IndexPart.only("7f4"))))
    }
  }

  test("the bucket of a shard is read again") {
    TempDir { directory =>
      val shards = manifest.shards.map(_.copy(bucket = Some(KeyBucket.of(16, 3, "a", "z\u00e9\ud83d\ude00"))))
      val bucketed = manifest.copy(mode = DatasetMode.KeyValue, shards = shards)
      bucketed.write(new Path(directory.toUri), conf)
      assert(read(directory).contains(bucketed))
      assert(bucketed.keyBuckets.contains(16))
    }
  }

  test("shards of several numbers of buckets, or of none, are in no buckets") {
    def counts(of: Option[Int]*) = {
      val shards =
        of.map(count => manifest.shards.head.copy(bucket = count.map(KeyBucket.of(_, 0, "a", "b"))))
      manifest.copy(shards = shards).keyBuckets
    }
    assert(counts(Some(4), Some(4)).contains(4))
    assert(Seq(counts(), counts(None, None), counts(Some(4), None), counts(None, Some(4)),
        counts(Some(4),
          Some(8))).forall(_.isEmpty))
  }

  private def refusedText(what: String, detail: String)(from: String, to: String): Unit =
    test(s"refused: $what") {
      TempDir { directory =>
        val shards = manifest.shards.map(_.copy(bucket = Some(KeyBucket.of(16, 3, "a", "z"))))
        manifest.copy(shards = shards).write(new Path(directory.toUri), conf)
        val file = directory.resolve("dataset_manifest.json")
        val text = Files.readString(file)
        assert(text.contains(from))
        Files.writeString(file, text.replace(from, to))
        assert(intercept[InvalidManifestException](read(directory)).getMessage.contains(detail))
      }
    }

  refusedText("a bucket whose key is no string", "`first_key`")("\"first_key\" : \"a\"",
    "\"first_key\" : null")
  refusedText("a bucket whose key is no Unicode", "`last_key`")(
    "\"last_key\" : \"z\"", "\"last_key\" : \"\\ud800\"")
  refusedText("sums of rows that no number holds", "too large")(
    "\"samples_count\" : 2", "\"samples_count\" : 9223372036854775807")
  refusedText("a schema that is no list", "`schema` is")("\"schema\" : [", "\"schema\" : 5, \"other\" : [")
  refusedText("shards without columns", "no columns in `schema`")("\"schema\" : [",
    "\"schema\" : [ ], \"other\" : [")
  refusedText("parts of the index that are no list", "`index_parts` is")(
    "\"index_parts\" : [", "\"index_parts\" : \"x\", \"other\" : [")
  refusedText("more buckets than there may be", "at most 100000")("\"buckets\" : 16", "\"buckets\" : 100001")

  test("long keys of a bucket are not recorded") {
    assert(KeyBucket.of(4, 1, "a", "b" * 1000).keys.isDefined)
    assert(KeyBucket.of(4, 1, "a", "b" * 1001).keys.isEmpty)
    TempDir { directory =>
      val shards   = manifest.shards.map(_.copy(bucket = Some(KeyBucket(16, 3, None))))
      val bucketed = manifest.copy(mode = DatasetMode.KeyValue, shards = shards)
      bucketed.write(new Path(directory.toUri), conf)
      assert(read(directory).contains(bucketed))
    }
  }

  test("a manifest that is a directory is an error, not a folder of plain files") {
    TempDir { directory =>
      Files.createDirectory(directory.resolve("dataset_manifest.json"))
      assert(intercept[UnreadableFileException](read(directory)).getMessage.contains("is not a regular file"))
    }
  }

  test("refused: a manifest of zeros") {
    TempDir { directory =>
      Files.write(directory.resolve("dataset_manifest.json"), new Array[Byte](4096))
      assert(
        intercept[InvalidManifestException](read(directory)).getMessage.contains("dataset_manifest.json"))
    }
  }

  refusedText("an unknown mode", "its mode is `stream`, expected `batch` or `key_value`")(
    "\"mode\" : \"batch\"", "\"mode\" : \"stream\"")
  refusedText("a bucket that is not among them", "`key_bucket`")("\"bucket\" : 3", "\"bucket\" : 16")
  refusedText("a bucket without the number of them", "`key_bucket`")("\"buckets\" : 16,", "")
  refusedText("a bucket without its last key", "`key_bucket`")("\"last_key\"", "\"least_key\"")
  refusedText("more buckets than an integer", "`key_bucket`")("\"buckets\" : 16", "\"buckets\" : 9999999999")

  private def refusedParts(what: String, detail: String)(parts: IndexPart*): Unit =
    test(s"refused: $what") {
      TempDir { directory =>
        manifest.copy(parts = Some(parts)).write(new Path(directory.toUri), conf)
        assert(intercept[InvalidManifestException](read(directory)).getMessage.contains(detail))
      }
    }

  refusedParts("a part of the index outside the directory",
    "the index part `../_tensor_index.parquet` is not named")(
    IndexPart("../_tensor_index.parquet", "7f4"))
  refusedParts("a part of the index that has another name", "the index part `notes.txt` is not named")(
    IndexPart("notes.txt", "7f4"))
  refusedParts("a part of the index that is named twice",
    "it names the index part `_tensor_index.parquet` twice")(
    IndexPart.only("7f4"), IndexPart.only("6e3"))

  test("a new manifest replaces the old one and leaves nothing beside it") {
    TempDir { directory =>
      manifest.write(new Path(directory.toUri), conf)
      manifest.copy(commitId = "8a5").write(new Path(directory.toUri), conf)
      assert(read(directory).map(_.commitId).contains("8a5"))
      assert(TempDir.names(directory) == Seq("dataset_manifest.json"))
    }
  }

  test("there is none in a directory without one, nor where there is no directory") {
    TempDir { directory =>
      assert(read(directory).isEmpty)
      assert(read(directory.resolve("absent")).isEmpty)
    }
  }

  private def withVersion(version: String, directory: LocalPath): Option[Manifest] = {
    val json = toJson.replace(s"\"format_version\" : \"${FormatVersion.Fixed}\"",
      s"\"format_version\" : \"$version\"")
    Files.writeString(directory.resolve("dataset_manifest.json"), json)
    read(directory)
  }

  for (version <- Seq("3.0", "99.0", "0.9"))
    test(s"version $version is not readable") {
      TempDir { directory =>
        val error = intercept[UnsupportedVersionException](withVersion(version, directory))
        assert(error.getMessage.contains(s"has format version $version, but"))
      }
    }

  for (newer <- Seq("1.7", "2.1"))
    test(s"the newer minor version $newer is readable but not writable") {
      TempDir { directory =>
        val version = withVersion(newer, directory).get.version
        val error = intercept[UnsupportedVersionException](
          version.checkWritable(new Path("/d/m.json"), FormatVersion.ofManifests))
        assert(error.getMessage.contains(s"/d/m.json has format version $newer, but"))
      }
    }

  test("kinds and types of columns are read again, and make a manifest of version 2.0") {
    TempDir { directory =>
      val columns = ColumnKind.all.map(kind =>
        ColumnRecord(kind.name, Some("U8"), Some(Nil), kind, Some("array<float>")))
      manifest.copy(schema = columns).write(new Path(directory.toUri), conf)
      assert(read(directory).exists(found => found.schema == columns && found.version == FormatVersion.Kinds))
      manifest.copy(schema = columns.filter(_.kind == ColumnKind.Fixed)).write(new Path(directory.toUri),
        conf)
      assert(read(directory).map(_.version).contains(FormatVersion.Fixed))
    }
  }

  test("the place of the keys is read again") {
    TempDir { directory =>
      manifest.copy(keyPlace = Some(1)).write(new Path(directory.toUri), conf)
      assert(read(directory).flatMap(_.keyPlace).contains(1))
    }
  }

  private def refusedKinds(what: String, mode: DatasetMode, detail: String)(kind: String): Unit =
    test(s"refused: $what") {
      TempDir { directory =>
        val columns = Seq(ColumnRecord("x", Some("U8"), Some(Nil), ColumnKind.Ragged))
        manifest.copy(mode = mode, schema = columns).write(new Path(directory.toUri), conf)
        val file = directory.resolve("dataset_manifest.json")
        Files.writeString(file, Files.readString(file).replace("\"ragged\"", kind))
        assert(intercept[InvalidManifestException](read(directory)).getMessage.contains(detail))
      }
    }

  refusedKinds("an unknown kind", DatasetMode.Batch,
    "the kind of a column is `stream`, expected one of fixed, ragged, text")("\"stream\"")
  refusedKinds("a kind that is no string", DatasetMode.Batch, "`kind` is `7`, expected a string")("7")
  refusedKinds("a ragged column by key", DatasetMode.KeyValue,
    "column `x` is ragged, which only columns of batches are")(
    "\"ragged\"")

  test("a shard has a second tensor for a column with offsets") {
    val ragged = ColumnRecord("t", Some("U8"), Some(Nil), ColumnKind.Text)
    val facts  = manifest.copy(schema = manifest.schema :+ ragged).factsOf(manifest.shards.head)
    assert(facts.tensors == 4 && ragged.tensors == Seq("t", "t.offsets"))
  }

  private def refused(what: String)(from: String, to: String, detail: String): Unit =
    test(s"refused: $what") {
      TempDir { directory =>
        val file = directory.resolve("dataset_manifest.json")
        Files.writeString(file, toJson.replace(from, to))
        val error = intercept[InvalidManifestException](read(directory))
        assert(error.getMessage.contains(s"$file is not a valid dataset manifest: $detail"))
      }
    }

  refused("a shard in another directory")("part-0.", "../part-0.",
    "the file `../part-0.safetensors` is not a file name in its directory")
  refused("an absolute shard")("part-0.", "/part-0.", "the file `/part-0.safetensors` is not a file name")
  refused("a shard of a name that no file system has")("part-0.", s"${"x" * 5000}.",
    s"the file `${"x" * 489}")
  refused("a shard that is named twice")("part-1.", "part-0.",
    "it names the shard `part-0.safetensors` twice")
  refused("a shard that is no object")("{ \"file\"", "7, { \"file\"", "a shard is `7`, expected an object")
  refused("a missing field of a shard")("header_bytes", "head", "it has no `header_bytes`")
  refused("a missing field")("\"commit_id\"", "\"id\"", "it has no `commit_id`")
  refused("a negative count")("\"bytes\" : 100", "\"bytes\" : -1", "`bytes` is `-1`, expected a count")
  refused("a checksum that is no number")("ffffffff", "xyz", "`crc32c` is `xyz`, expected 8 hex digits")
  refused("a version that is none")(s"\"${FormatVersion.Fixed}\"", "\"one\"",
    "its format version is `one`, expected MAJOR.MINOR")
  refused("a place of keys that no row has")("\"options\"", "\"key_place\" : 9, \"options\"",
    "`key_place` is `9`, expected a number from 0 to 2")
  refused("half a file")("\"options\"", "", "")
}

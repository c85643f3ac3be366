package io.github.semyonsinchenko.safetensors.mlflow

import java.io.FileNotFoundException
import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, DatasetMode, Manifest, ShardRecord}

class SafetensorsDatasetSourceTest extends AnyFunSuite {
  private val conf = new Configuration

  private val manifest = Manifest(
    "7f4",
    DatasetMode.Batch,
    Map.empty,
    Seq(ColumnRecord("x", None, None)),
    Seq(ShardRecord("part-0.safetensors", 2, 5000000000L, 80, 0),
      ShardRecord("part-1.safetensors", 1, 90, 80, 0))
  )

  private def withDataset(name: String)(body: LocalPath => Unit): Unit = TempDir { parent =>
    val directory = Files.createDirectory(parent.resolve(name))
    manifest.write(new Path(directory.toUri), conf)
    body(directory)
  }

  private def json(path: String) = SafetensorsDatasetSource(path, conf).toJson()

  private def expected(uri: String) =
    s"""{"uri":"$uri","commit_id":"7f4","total_samples":3,"total_bytes":5000000090,"shards":2}"""

  test("the manifest's URI, its commit and its sums") {
    withDataset("points") { directory =>
      assert(json(directory.toString) == expected(s"file://$directory/dataset_manifest.json"))
      assert(json(directory.toUri.toString) == expected(s"file://$directory/dataset_manifest.json"))
    }
  }

  test("of what is no letter in a path here, the URI has the bytes") {
    withDataset("a b=\u00e9%") { directory =>
      val uri = s"file://${directory.getParent}/a%20b%3D%C3%A9%25/dataset_manifest.json"
      assert(json(directory.toString) == expected(uri))
    }
  }

  test("no password of a URL, but the container that a name stands for") {
    def uri(text: String) = SafetensorsDatasetSource.uri(new Path(text))
    assert(uri("ftp://me:secret@host/points/m.json") == "ftp://host/points/m.json")
    assert(uri("abfss://box@account.net/points/m.json") == "abfss://box@account.net/points/m.json")
    assert(uri("s3a://bucket/a:b@c/m.json") == "s3a://bucket/a:b@c/m.json")
  }

  test("a path that has no manifest") {
    TempDir { directory =>
      val error = intercept[FileNotFoundException](json(directory.toString))
      assert(error.getMessage.contains(s"$directory has no dataset_manifest.json"))
    }
  }
}

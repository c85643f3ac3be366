package io.github.semyonsinchenko.safetensors.dataset

import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.StructType
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.common.InvalidRequestException

class DatasetFilesTest extends AnyFunSuite {
  private val conf = new Configuration

  private def create(directory: LocalPath, names: String*): Unit =
    names.foreach(name => Files.write(directory.resolve(name), new Array[Byte](10)))

  private def manifest(directory: LocalPath, shards: String*): Unit =
    Manifest("id", DatasetMode.Batch, Map.empty, Seq(ColumnRecord("x", None, None)),
      shards.map(ShardRecord(_, 1, 10, 8, 0)))
      .write(new Path(directory.toUri), conf)

  private def names(path: LocalPath): Seq[String] =
    Snapshot.of(Seq(new Path(path.toUri)), ListingRules(), new StructType, conf).files.map(_.name)

  private def refused(path: LocalPath): String =
    intercept[InvalidRequestException](names(path)).getMessage

  test("a named file is read whatever its name") {
    TempDir { directory =>
      create(directory, "_weights.bin")
      assert(names(directory.resolve("_weights.bin")) == Seq("_weights.bin"))
    }
  }

  test("a directory without a manifest contributes its safetensors files by name, hidden ones left out") {
    TempDir { directory =>
      create(directory, "b.safetensors", "a.safetensors", "config.json", "_c.safetensors", ".d.safetensors")
      assert(names(directory) == Seq("a.safetensors", "b.safetensors"))
    }
  }

  test("a directory with a manifest contributes the shards that it names, in its order, and no leftovers") {
    TempDir { directory =>
      create(directory, "b.safetensors", "a.safetensors", "left.safetensors")
      manifest(directory, "b.safetensors", "a.safetensors")
      assert(names(directory) == Seq("b.safetensors", "a.safetensors"))
    }
  }

  test("a shard that is gone is an error that names it") {
    TempDir { directory =>
      manifest(directory, "a.safetensors")
      assert(refused(directory).contains("Shard a.safetensors is gone from"))
    }
  }

  test("a shard that was cut off is an error with both lengths") {
    TempDir { directory =>
      create(directory, "a.safetensors")
      manifest(directory, "a.safetensors")
      Files.write(directory.resolve("a.safetensors"), new Array[Byte](9))
      assert(refused(directory).contains("has 9 bytes, but its dataset_manifest.json says 10."))
    }
  }

  test("a path where nothing is, and a directory without safetensors files, are errors") {
    TempDir { directory =>
      assert(refused(directory.resolve("absent")).startsWith("Path does not exist: "))
      create(directory, "a.bin")
      assert(refused(directory).contains("holds no safetensors files"))
    }
  }
}

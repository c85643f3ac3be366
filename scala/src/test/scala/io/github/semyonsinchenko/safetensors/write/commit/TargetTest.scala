package io.github.semyonsinchenko.safetensors.write.commit

import java.nio.file.{Files, Path => LocalPath}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset._

class TargetTest extends AnyFunSuite {
  private val conf = new Configuration
  conf.set(ChangingFileSystem.setting._1, ChangingFileSystem.setting._2)

  private val shard = s"part-00000-${UUID.randomUUID()}.safetensors"
  private val manifest =
    Manifest(UUID.randomUUID().toString, DatasetMode.Batch, Map.empty, Seq(ColumnRecord("x", None, None)),
      Seq(ShardRecord(shard, 1, 1, 1, 0)))

  private def check(directory: LocalPath) = Target.check(
    new Path(s"changing://${directory.toUri.getPath}"),
    Existing.Replace,
    _ => fail("nothing is appended"),
    conf)

  test("a dataset that another write begins between two looks at the directory is that dataset") {
    TempDir { directory =>
      val begins = (_: Path) => {
        manifest.write(new Path(directory.toUri), conf)
        if (!Files.exists(directory.resolve(shard))) Files.createFile(directory.resolve(shard))
        ()
      }
      assert(Changes.beforeListing(begins)(check(directory)).exists(_.commitId == manifest.commitId))
    }
  }

  test("a directory of other files is refused") {
    TempDir { directory =>
      Files.createFile(directory.resolve(shard))
      val error = intercept[InvalidRequestException](check(directory))
      assert(error.getMessage.contains(shard))
    }
  }
}

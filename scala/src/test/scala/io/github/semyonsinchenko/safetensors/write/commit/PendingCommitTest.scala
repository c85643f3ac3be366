package io.github.semyonsinchenko.safetensors.write.commit

import java.nio.file.{Files, Path => LocalPath}
import java.nio.file.attribute.FileTime
import java.time.{Duration, Instant}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, DatasetMode, Manifest, ShardRecord}

class PendingCommitTest extends AnyFunSuite {
  private val conf = new Configuration
  private val id   = UUID.randomUUID().toString

  private def shard = s"part-00000-${UUID.randomUUID()}.safetensors"

  private val (kept, dropped) = (shard, shard)
  private val manifest =
    Manifest(id, DatasetMode.Batch, Map.empty, Seq(ColumnRecord("x", None, None)),
      Seq(ShardRecord(kept, 1, 1, 1, 0)))

  /** Shards, and a record that names them. */
  private def shardsAnd(record: String, directory: LocalPath): Unit = {
    Seq(kept, dropped).foreach(name => Files.createFile(directory.resolve(name)))
    Files.writeString(directory.resolve(record), s"$kept\n$dropped")
    ()
  }

  test("all that a commit that died has left goes, but for what the manifest names") {
    TempDir { directory =>
      val folder = Files.createDirectory(directory.resolve("_pending"))
      shardsAnd(s"_pending/$id", directory)
      Seq(s"$id.manifest", s".$id.${UUID.randomUUID()}.tmp").foreach(name =>
        Files.createFile(folder.resolve(name)))
      val path  = new Path(directory.toUri)
      val found = PendingCommit.found(path, conf)
      PendingCommit.withdraw(found, conf)
      PendingCommit.recover(path, found, Some(manifest), conf)
      assert(TempDir.names(folder).isEmpty)
      assert(Files.exists(directory.resolve(kept)) && !Files.exists(directory.resolve(dropped)))
    }
  }

  test("so does what a commit of an older version has left") {
    TempDir { directory =>
      shardsAnd(s"_commit-$id.pending", directory)
      Leftovers.delete(new Path(directory.toUri), manifest, conf)
      assert(TempDir.names(directory) == Seq(kept))
    }
  }

  test("the age of what is left is told by the file system's clock alone") {
    TempDir { directory =>
      // Its clock is a month behind that of this machine.
      val now = Instant.now.minus(Duration.ofDays(30))
      def made(name: String, days: Long): Unit = {
        Files.setLastModifiedTime(Files.createFile(directory.resolve(name)),
          FileTime.from(now.minus(Duration.ofDays(days))))
        ()
      }
      val (young, old) = (s"_index-$id", s"_index-${UUID.randomUUID()}")
      made(Manifest.FileName, 0)
      made(young, 6)
      made(old, 8)
      Leftovers.delete(new Path(directory.toUri), manifest, conf)
      assert(TempDir.names(directory).sorted == Seq(young, Manifest.FileName).sorted)
    }
  }
}

package io.github.semyonsinchenko.safetensors.storage

import java.io.IOException
import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir

class AtomicFileTest extends AnyFunSuite {
  private val conf = new Configuration

  private def unchanged(path: Path) = ConditionalWrite.ifUnchanged(path, path.getFileSystem(conf))

  test("a writer that stands still before its last step does not replace a file without its draft") {
    TempDir { directory =>
      val path  = new Path(directory.resolve("file.json").toUri)
      val draft = new Path(directory.resolve("late.draft").toUri)
      AtomicFile.write(path, "old", conf)
      intercept[IOException](AtomicFile.replace(path, draft, unchanged(path), conf)(_.write(1)) {
        draft.getFileSystem(conf).delete(draft, false)
        AtomicFile.write(path, "new", conf)
      })
      assert(Files.readString(directory.resolve("file.json")) == "new")
      assert(TempDir.names(directory) == Seq("file.json"))
    }
  }

  test("a file stays as it is if its writer must not go on") {
    TempDir { directory =>
      val path  = new Path(directory.resolve("file.json").toUri)
      val draft = new Path(directory.resolve("late.draft").toUri)
      AtomicFile.write(path, "old", conf)
      intercept[IOException](AtomicFile.replace(path, draft, unchanged(path), conf)(_.write(1))(
          throw new IOException("lost")))
      assert(Files.readString(directory.resolve("file.json")) == "old")
      assert(TempDir.names(directory) == Seq("file.json"))
    }
  }
}

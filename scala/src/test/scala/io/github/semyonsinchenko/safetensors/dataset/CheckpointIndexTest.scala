package io.github.semyonsinchenko.safetensors.dataset

import java.io.RandomAccessFile
import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.common.InvalidRequestException

class CheckpointIndexTest extends AnyFunSuite {

  private def refused(what: String)(make: LocalPath => Unit): Unit = test(s"refused: $what") {
    TempDir { directory =>
      val index = directory.resolve("model.safetensors.index.json")
      make(index)
      val error =
        intercept[InvalidRequestException](CheckpointIndex.read(new Path(index.toUri), new Configuration))
      assert(error.getMessage.contains("model.safetensors.index.json is not a valid checkpoint index"))
    }
  }

  refused("an empty file")(Files.createFile(_))
  refused("zeros")(Files.write(_, new Array[Byte](4096)))
  // Larger than any heap: it is not read in whole.
  refused("a terabyte without bytes") { index =>
    val file = new RandomAccessFile(index.toFile, "rw")
    try file.setLength(1L << 40)
    finally file.close()
  }
}

package io.github.semyonsinchenko.safetensors.dataset

import java.io.{EOFException, RandomAccessFile}
import java.nio.file.Files

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir

class MappedSourceTest extends AnyFunSuite {

  test("bytes come from beyond 4 GiB, and across the border of two windows") {
    TempDir { directory =>
      val file   = directory.resolve("sparse").toFile
      val border = 4L << 30
      Using.resource(new RandomAccessFile(file, "rw")) { out =>
        out.setLength(border + 100)
        out.seek(border - 2)
        out.write(Array[Byte](1, 2, 3, 4))
      }
      Using.resource(new MappedSource(file, "sparse")) { source =>
        assert(source.length == border + 100)
        assert(source.bytes(border - 3, 6).toSeq == Seq[Byte](0, 1, 2, 3, 4, 0))
      }
    }
  }

  test("a file that ends too early is an error, not zeros") {
    TempDir { directory =>
      val file = directory.resolve("short")
      Files.write(file, Array[Byte](1, 2, 3))
      Using.resource(new MappedSource(file.toFile, "short")) { source =>
        assert(intercept[EOFException](source.bytes(1,
          3)).getMessage == "short ends at byte 3, before byte 4")
      }
    }
  }

  test("an empty file has no bytes") {
    TempDir { directory =>
      val file = Files.createFile(directory.resolve("empty"))
      Using.resource(new MappedSource(file.toFile, "empty"))(source => assert(source.length == 0))
    }
  }
}

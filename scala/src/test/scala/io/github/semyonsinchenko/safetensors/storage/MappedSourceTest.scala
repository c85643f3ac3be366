package io.github.semyonsinchenko.safetensors.storage

import java.io.RandomAccessFile
import java.lang.management.{BufferPoolMXBean, ManagementFactory}
import java.nio.file.{Files, Path, StandardCopyOption}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.{ByteCopy, ByteSource}

class MappedSourceTest extends AnyFunSuite {
  private val Window = 1L << 30

  private def open(file: Path, length: Long): ByteSource =
    Sources.open(DataFile.at(file.toString, length), new Configuration)

  private def opened[A](file: Path)(body: ByteSource => A): A =
    Using.resource(open(file, Files.size(file)))(body)

  /** A file of this length, which takes no room but for `bytes` from `position` on. */
  private def sparse(file: Path, length: Long, position: Long = 0, bytes: Array[Byte] = Array.empty): Path = {
    Using.resource(new RandomAccessFile(file.toFile, "rw")) { out =>
      out.setLength(length)
      out.seek(position)
      out.write(bytes)
    }
    file
  }

  private def cut(file: Path, length: Long): Unit =
    Using.resource(new RandomAccessFile(file.toFile, "rw"))(_.setLength(length))

  private def mappedBytes: Long = ManagementFactory.getPlatformMXBeans(classOf[BufferPoolMXBean]).asScala
    .find(_.getName == "mapped").get.getTotalCapacity

  test("bytes come from beyond 4 GiB, and across the border of two windows") {
    TempDir { directory =>
      val border = 4 * Window
      val file   = sparse(directory.resolve("sparse"), border + 100, border - 2, Array[Byte](1, 2, 3, 4))
      opened(file) { source =>
        assert(source.length == border + 100)
        assert(source.bytes(border - 3, 6).toSeq == Seq[Byte](0, 1, 2, 3, 4, 0))
      }
    }
  }

  test("one read goes over several windows") {
    TempDir { directory =>
      val file = sparse(directory.resolve("sparse"), 3 * Window, 2 * Window - 1, Array[Byte](1, 2))
      opened(file) { source =>
        val target = new Array[Byte](400 << 20)
        val start  = 2 * Window - (200 << 20)
        source.read(start, target, 0, target.length)
        assert(target((200 << 20) - 1) == 1 && target(200 << 20) == 2)
        assert(target(0) == 0 && target.last == 0)
      }
    }
  }

  test("a closed file is not mapped, and has no more bytes") {
    TempDir { directory =>
      val before = mappedBytes
      val source = open(sparse(directory.resolve("sparse"), 2 * Window), 2 * Window)
      source.bytes(Window - 10, 20)
      assert(mappedBytes == before + 2 * Window)
      source.close()
      assert(mappedBytes == before)
      assert(intercept[UnreadableFileException](source.bytes(0, 10)).getMessage.contains("Stream Closed"))
    }
  }

  test("a range beyond the end is an error, not zeros") {
    TempDir { directory =>
      opened(Files.write(directory.resolve("short"), Array[Byte](1, 2, 3))) { source =>
        for ((position, count) <- Seq((1L, 3), (4L, 0), (Long.MaxValue, 1), (-1L, 1))) {
          val error = intercept[UnreadableFileException](source.bytes(position, count))
          assert(error.getMessage.startsWith(
              s"$directory/short has 3 bytes, but bytes $position to ${BigInt(position) + count} were requested"))
        }
      }
    }
  }

  test("an empty file has no bytes") {
    TempDir(directory => opened(Files.createFile(directory.resolve("empty")))(s => assert(s.length == 0)))
  }

  test("a file that has changed since it was listed, or is gone, is an error") {
    TempDir { directory =>
      val file = Files.write(directory.resolve("a"), new Array[Byte](10))
      assert(intercept[UnreadableFileException](Using.resource(open(file, 11))(_.bytes(0, 1))).getMessage ==
        s"$file has changed since the table was loaded: it had 11 bytes then, and has 10 now. Load the table again.")
      Files.delete(file)
      assert(intercept[UnreadableFileException](open(file, 10)).getMessage ==
        s"$file is gone: it was there when the table was loaded. Load the table again.")
    }
  }

  test("a file that is replaced or deleted under its reader keeps its bytes for it") {
    TempDir { directory =>
      val file = Files.write(directory.resolve("a"), Array.fill(100000)(1.toByte))
      opened(file) { source =>
        Files.write(directory.resolve("b"), Array.fill(100000)(2.toByte))
        Files.move(directory.resolve("b"), file, StandardCopyOption.REPLACE_EXISTING)
        assert(source.bytes(0, 100000).forall(_ == 1))
        Files.delete(file)
        assert(source.bytes(90000, 1000).forall(_ == 1))
      }
    }
  }

  for ((what, kept) <- Seq("in a page" -> 100001L, "pages before" -> 10000L))
    test(s"a file that is cut off $what while it is mapped is an error, not zeros") {
      TempDir { directory =>
        val file = Files.write(directory.resolve("a"), Array.fill(200000)(1.toByte))
        opened(file) { source =>
          assert(source.bytes(100000, 1).head == 1)
          cut(file, kept)
          for (count <- Seq(1, 8, 100, 90000)) {
            val error = intercept[UnreadableFileException](source.bytes(100000, count))
            assert(error.getMessage ==
              s"$file has changed since the table was loaded: it had 200000 bytes then, and has $kept now. Load the table again.")
          }
        }
      }
    }

  test("a file that is cut off during a read is an error, not zeros") {
    TempDir { directory =>
      val file = Files.write(directory.resolve("a"), Array.fill(100)(1.toByte))
      opened(file) { source =>
        source.bytes(0, 100)
        val copy = ByteCopy(0, 100, new Array[Byte](100), 0)
        // Asked for once to check the bounds, and again to copy.
        val copies = new IndexedSeq[ByteCopy] {
          private var asked        = 0
          override def length: Int = 1
          override def apply(number: Int): ByteCopy = {
            asked += 1
            if (asked == 2) cut(file, 50)
            copy
          }
        }
        val error = intercept[UnreadableFileException](source.readAll(copies))
        assert(error.getMessage.contains("it had 100 bytes then, and has 50 now"))
      }
    }
  }
}

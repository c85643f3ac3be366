package io.github.semyonsinchenko.safetensors.write.memory

import java.lang.management.{BufferPoolMXBean, ManagementFactory}
import java.nio.ByteBuffer
import java.nio.file.{Files, Path => LocalPath}
import java.util.zip.CRC32C

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.write.shards.ShardFile

class PayloadTest extends AnyFunSuite {

  private def drained(payload: Payload, directory: LocalPath, name: String): (Seq[Byte], ShardFile) = {
    val file = ShardFile.create(new Path(directory.resolve(name).toUri), new Configuration)
    payload.drain(file.write)
    file.close()
    (Files.readAllBytes(directory.resolve(name)).toSeq, file)
  }

  private def bytes(count: Int, seed: Int): Array[Byte] = Array.tabulate(count)(i => (i * 31 + seed).toByte)

  private def spill(directory: LocalPath): () => SpillFile =
    () => new SpillFile(directory.resolve("spill").toFile)

  for ((where, limit) <- Seq("in memory" -> (64L << 20), "partly on disk" -> (3L << 20), "on disk" -> 0L))
    test(s"bytes come out in the order that they went in, $where, and again after a drain")(roundTrip(limit))

  private def roundTrip(limit: Long): Unit =
    TempDir { directory =>
      val payload = new Payload(new Pages(limit, 1 << 20), spill(directory))
      for (name <- Seq("first", "second")) {
        val parts = Seq(bytes(3, 1), bytes(5 << 20, 2), bytes(0, 3), bytes(70000, 4))
        parts.foreach(part => payload.append(ByteBuffer.wrap(part)))
        payload.room(4).putInt(0x04030201)
        payload.appendZeros(2)
        val expected = parts.flatten ++ Seq[Byte](1, 2, 3, 4, 0, 0)
        assert(payload.size == expected.size)
        val (written, file) = drained(payload, directory, name)
        assert(written == expected)
        val checksum = new CRC32C
        checksum.update(expected.toArray)
        assert(file.length == expected.size && file.crc32c == checksum.getValue.toInt)
        assert(payload.size == 0)
      }
      assert(TempDir.names(directory) == Seq("first", "second"))
    }

  test("room is given for more than a page, too") {
    val payload = new Payload(new Pages(1 << 20, 1 << 20), () => fail("nothing to spill"))
    assert(payload.room(3 << 20).remaining >= (3 << 20))
  }

  test("what is cleared does not come out, and its file has no name that could be left behind") {
    TempDir { directory =>
      val payload = new Payload(new Pages(0, 1 << 20), spill(directory))
      payload.append(ByteBuffer.wrap(bytes(3 << 20, 1)))
      assert(payload.size == (3 << 20) && TempDir.names(directory).isEmpty)
      payload.clear()
      payload.append(ByteBuffer.wrap(bytes(2, 7)))
      assert(drained(payload, directory, "a")._1 == bytes(2, 7).toSeq)
    }
  }

  private def directMemory: Long = ManagementFactory.getPlatformMXBeans(classOf[BufferPoolMXBean]).asScala
    .filter(_.getName == "direct").map(_.getMemoryUsed).sum

  test("rows larger than a page keep the limit, but for one") {
    TempDir { directory =>
      val before  = directMemory
      val payload = new Payload(new Pages(1 << 20, 1 << 16), spill(directory))
      val row     = bytes(1 << 17, 1)
      for (_ <- 1 to 20) payload.room(row.length).put(row)
      assert(directMemory - before <= (1 << 20) + 2 * row.length)
      assert(drained(payload, directory, "a")._1 == Seq.fill(20)(row.toSeq).flatten)
    }
  }
}

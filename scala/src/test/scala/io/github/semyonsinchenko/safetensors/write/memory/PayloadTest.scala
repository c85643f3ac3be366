package io.github.semyonsinchenko.safetensors.write.memory

import java.nio.ByteBuffer
import java.nio.file.{Files, Path => LocalPath}
import java.util.zip.CRC32C

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
      val payload = new Payload(LimitedMemory.pages(limit, 1 << 20), spill(directory))
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
    val payload = new Payload(LimitedMemory.pages(1 << 20, 1 << 20), () => fail("nothing to spill"))
    assert(payload.room(3 << 20).remaining >= (3 << 20))
  }

  test("pages that move to disk on request come out first, and their memory is free") {
    TempDir { directory =>
      val memory  = new LimitedMemory(64 << 20)
      val pages   = new Pages(memory, 64 << 20, 1 << 20)
      val payload = new Payload(pages, spill(directory))
      val parts   = Seq(bytes(3 << 20, 1), bytes(5 << 20, 2), bytes(2 << 20, 3))
      for (part <- parts) {
        payload.append(ByteBuffer.wrap(part))
        memory.requestSpill()
        assert(memory.used <= (1 << 20))
      }
      assert(drained(payload, directory, "a")._1 == parts.flatten)
      payload.close()
      pages.close()
      assert(memory.used == 0)
    }
  }

  test("what is reserved is given back when all is closed, whatever was granted") {
    TempDir { directory =>
      for (limit <- Seq(0L, 100L, 3L << 20)) {
        val memory  = new LimitedMemory(limit)
        val pages   = new Pages(memory, limit, 1 << 20)
        val payload = new Payload(pages, spill(directory))
        payload.append(ByteBuffer.wrap(bytes(5 << 20, 1)))
        payload.room(2 << 20).putInt(1)
        assert(memory.used <= limit)
        payload.close()
        pages.close()
        assert(memory.used == 0)
      }
    }
  }

  test("what is cleared does not come out, and its file has no name that could be left behind") {
    TempDir { directory =>
      val payload = new Payload(LimitedMemory.pages(0, 1 << 20), spill(directory))
      payload.append(ByteBuffer.wrap(bytes(3 << 20, 1)))
      assert(payload.size == (3 << 20) && TempDir.names(directory).isEmpty)
      payload.clear()
      payload.append(ByteBuffer.wrap(bytes(2, 7)))
      assert(drained(payload, directory, "a")._1 == bytes(2, 7).toSeq)
    }
  }
}

package io.github.semyonsinchenko.safetensors.storage

import java.io.RandomAccessFile
import java.nio.file.{Files, Path}

import scala.util.{Random, Using}

import org.apache.hadoop.conf.Configuration
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.{ByteRange, ByteSource, Bytes}
import io.github.semyonsinchenko.safetensors.{CountingFileSystem, Requests, TempDir}

class StreamSourceTest extends AnyFunSuite {
  private val conf = new Configuration
  conf.set(CountingFileSystem.setting._1, CountingFileSystem.setting._2)
  // Hadoop's local file system, with its checksums, under a name that is not the local one's.
  conf.set("fs.checked.impl", classOf[CheckedFileSystem].getName)

  private val content = new Array[Byte](40 << 20)
  new Random(5).nextBytes(content)

  private def slice(range: ByteRange): Array[Byte] =
    content.slice(range.position.toInt, range.position.toInt + range.count)

  private def inFile(bytes: Array[Byte])(body: Path => Unit): Unit = TempDir { directory =>
    body(Files.write(directory.resolve("a.safetensors"), bytes))
  }

  private def opened[A](file: Path, scheme: String = "counted", length: Option[Long] = None)(
      body: ByteSource => A): A =
    Using.resource(Sources.open(DataFile.at(s"$scheme://$file", length.getOrElse(Files.size(file))), conf))(
      body)

  private def requests(body: => Unit): Seq[(Long, Int)] =
    Requests.during(body)._2.get("a.safetensors").fold(Seq.empty[(Long, Int)])(_.ranges)

  /** Reads ranges, which must give the file's bytes, and gives the requests that it took. */
  private def requestsFor(ranges: (Long, Int)*): Seq[(Long, Int)] = {
    var asked = Seq.empty[(Long, Int)]
    inFile(content) { file =>
      val all = ranges.map { case (position, count) => ByteRange(position, count) }.toIndexedSeq
      opened(file) { source =>
        asked = requests {
          val arrays = Copies.of(source, all)
          assert(arrays.length == all.length)
          all.zip(arrays).foreach { case (range, bytes) => assert(bytes.sameElements(slice(range)), range) }
        }
      }
    }
    asked
  }

  private val Mega = 1 << 20

  test("ranges come in the order asked for, those that lie together in one request") {
    assert(requestsFor(300L -> 100, 100L -> 100, 200L -> 100, 5L -> 0) == Seq(100L -> 300))
  }

  test("ranges far from each other are asked for at once, with nothing between them") {
    assert(requestsFor(20L * Mega -> 10, 0L -> 10, 10L * Mega -> 10) ==
      Seq(0L -> 10, 10L * Mega -> 10, 20L * Mega -> 10))
  }

  test("the same range twice, and ranges that overlap") {
    assert(requestsFor(0L -> 10, 0L -> 10, 5L -> 10) == Seq(0L -> 15))
    assert(requestsFor(0L -> 17 * Mega, 0L -> 17 * Mega, 10L -> 10, 9L * Mega -> 15 * Mega).size == 4)
  }

  test("a batch that its last row makes somewhat larger") {
    val rows = (0 until 9).map(row => row * 1000000L -> 1000000)
    assert(requestsFor(rows: _*) == Seq(0L -> 9000000))
  }

  test("ranges that are larger than a batch, beside small ones") {
    val large = 17 * Mega
    assert(requestsFor(0L -> large, large.toLong -> 10, (large + 10L) -> 10, (large + 20L) -> large) ==
      Seq(0L -> large, large.toLong -> 20, (large + 20L) -> large))
  }

  test("no ranges, and none with bytes, take no request") {
    assert(requestsFor() == Nil)
    assert(requestsFor(0L -> 0, 40L * Mega -> 0) == Nil)
  }

  test("the last byte") {
    assert(requestsFor(40L * Mega - 1 -> 1) == Seq(40L * Mega - 1 -> 1))
  }

  test("any ranges give the file's bytes, with and without checksums") {
    inFile(content) { file =>
      val random = new Random(7)
      writeWithChecksums(file.resolveSibling("b"), content)
      for (round <- 1 to 12) {
        val ranges = Vector.fill(1 + random.nextInt(12)) {
          val position = random.nextInt(content.length)
          ByteRange(position.toLong,
            random.nextInt(math.min(content.length - position, 1 << (1 + random.nextInt(24)))))
        }
        for ((scheme, name) <- Seq("counted" -> "a.safetensors", "checked" -> "b"))
          opened(file.resolveSibling(name), scheme) { source =>
            ranges.zip(Copies.of(source, ranges)).foreach { case (range, bytes) =>
              assert(bytes.sameElements(slice(range)), s"round $round, $scheme, $range of $ranges")
            }
          }
      }
    }
  }

  test("a byte that does not fit its checksum is an error that names the file") {
    inFile(content) { file =>
      val checked = file.resolveSibling("b")
      writeWithChecksums(checked, content)
      Using.resource(new RandomAccessFile(checked.toFile, "rw")) { out =>
        out.seek(1000)
        out.write(content(1000) + 1)
      }
      opened(checked, "checked") { source =>
        for (ranges <-
            Seq(Vector(ByteRange(990, 20)), Vector(ByteRange(990, 20), ByteRange(10L * Mega, 1)))) {
          val error = intercept[UnreadableFileException](Copies.of(source, ranges)).getMessage
          assert(error.startsWith(s"checked://$checked could not be read:") && error.contains("hecksum"))
        }
      }
    }
  }

  private def writeWithChecksums(file: Path, bytes: Array[Byte]): Unit = {
    val path = new org.apache.hadoop.fs.Path(s"checked://$file")
    Using.resource(path.getFileSystem(conf).create(path))(_.write(bytes))
  }

  test("the tensors of a small file come with its header") {
    inFile(Bytes.file("""{"a":["U8",[3],[0,3]],"b":["U8",[2],[3,5]]}""") ++ Array[Byte](1, 2, 3, 4, 5)) {
      file =>
        val size = Files.size(file).toInt
        assert(requests(opened(file) { source =>
          val start = Sources.header(source).dataStart
          assert(Copies.of(source, Vector(ByteRange(start + 3, 2), ByteRange(start, 3))).map(_.toSeq) ==
            Seq(Seq[Byte](4, 5), Seq[Byte](1, 2, 3)))
          assert(source.bytes(start + 1, 2).toSeq == Seq[Byte](2, 3))
        }) == Seq(0L -> size))
    }
  }

  test("a small read in the middle of a file is not taken for its head") {
    inFile(content) { file =>
      opened(file) { source =>
        for (position <- Seq(1000L, 0L, 500L))
          assert(source.bytes(position, 100).sameElements(slice(ByteRange(position, 100))), position)
      }
    }
  }

  for ((where, by) <- Seq("one byte before" -> -1, "at" -> 0, "one byte behind" -> 1))
    test(s"a header that ends $where the end of the first request, far away and mapped") {
      val json                                    = """{"a":["U8",[100],[0,100]]}"""
      val header                                  = json + " " * (64 * 1024 + by - 8 - json.length)
      def startOfData(file: Path, scheme: String) = opened(file, scheme)(Sources.header(_).dataStart)
      inFile(Bytes.file(header, data = 100)) { file =>
        val first = Seq(0L -> 64 * 1024)
        assert(requests(assert(startOfData(file, "counted") == 64 * 1024 + by)) ==
          (if (by > 0) first :+ (65536L -> 1) else first))
        assert(startOfData(file, "file") == 64 * 1024 + by)
      }
    }

  test("a header of more than the first request takes two") {
    val json = """{"__metadata__":{"a":"""" + "x" * 200000 + """"},"b":["U8",[100],[0,100]]}"""
    inFile(Bytes.file(json, data = 100)) { file =>
      assert(requests(opened(file)(Sources.header)) ==
        Seq(0L -> 65536, 65536L -> (8 + json.length - 65536)))
    }
  }

  test("a file is opened once, and nothing else is asked of it") {
    inFile(Bytes.file("{}")) { file =>
      assert(Requests.during(opened(file)(Sources.header))._2 ==
        Map("a.safetensors" -> Requests(opens = 1, ranges = Vector(0L -> 10))))
    }
  }

  private def errorOf(body: => Any): String = intercept[UnreadableFileException](body).getMessage

  test("a file that is gone is an error that says so") {
    inFile(Bytes.file("{}")) { file =>
      val length = Files.size(file)
      Files.delete(file)
      assert(errorOf(opened(file, length = Some(length))(Sources.header)) ==
        s"counted://$file is gone: it was there when the table was loaded. Load the table again.")
    }
  }

  test("a file that has become shorter or longer is an error that tells both lengths") {
    inFile(Bytes.file("{}")) { file =>
      for (length <- Seq(9L, 11L, 100000L))
        assert(errorOf(opened(file, length = Some(length))(Sources.header)) ==
          s"counted://$file has changed since the table was loaded: it had $length bytes then, and has 10 now. " +
          "Load the table again.")
    }
  }

  test("a file that is cut off while it is read is an error") {
    inFile(content) { file =>
      opened(file) { source =>
        source.bytes(0, 100)
        Using.resource(new RandomAccessFile(file.toFile, "rw"))(_.setLength(15L * Mega))
        val changed =
          s"counted://$file has changed since the table was loaded: it had ${content.length} bytes then, " +
            s"and has ${15 * Mega} now. Load the table again."
        val far = ByteRange(20L * Mega, 10)
        for (ranges <- Seq(Vector(far), Vector(ByteRange(Mega.toLong, 10), far)))
          assert(errorOf(Copies.of(source, ranges)) == changed)
        assert(errorOf(source.bytes(15L * Mega - 1, 2)) == changed)
      }
    }
  }

  test("a range beyond the end is an error before anything is asked for") {
    inFile(content) { file =>
      opened(file)(source =>
        for ((position, count) <- Seq((40L * Mega, 1), (-1L, 1), (Long.MaxValue, 10))) {
          assert(requests(assert(errorOf(Copies.of(source,
              Vector(ByteRange(0, 1), ByteRange(position, count))))
              .startsWith(s"counted://$file has ${content.length} bytes, but bytes $position to "))) == Nil)
        })
    }
  }
}

final class CheckedFileSystem extends org.apache.hadoop.fs.FilterFileSystem(new CheckedLocal)

private final class CheckedLocal
    extends org.apache.hadoop.fs.LocalFileSystem(new org.apache.hadoop.fs.RawLocalFileSystem {
      override def getUri: java.net.URI = java.net.URI.create("checked:///")
    }) {
  override def getUri: java.net.URI = java.net.URI.create("checked:///")
  override def getScheme: String    = "checked"
}

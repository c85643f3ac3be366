package io.github.semyonsinchenko.safetensors.read.rows

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span => Limit}

import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.{Bytes, RepeatedNames}
import io.github.semyonsinchenko.safetensors.read.columns.{RowColumn, TensorField}
import io.github.semyonsinchenko.safetensors.read.conditions.Conditions
import io.github.semyonsinchenko.safetensors.storage.{IgnoredFiles, UnreadableFileException}
import io.github.semyonsinchenko.safetensors.{CountingFileSystem, Requests, StuckFileSystem, TempDir}

class BatchesAheadTest extends AnyFunSuite with Eventually {

  implicit override val patienceConfig: PatienceConfig = PatienceConfig(Limit(20, Seconds))

  // A tensor of this size is a batch of its own.
  private val Size = 9 << 20

  private val conf = new Configuration(false)
  conf.set(CountingFileSystem.setting._1, CountingFileSystem.setting._2)
  conf.set(StuckFileSystem.setting._1, StuckFileSystem.setting._2)

  /** The batches of one file with three tensors, all its rows of `long`. */
  private def batches(scheme: String, limit: Option[Int] = None)(body: (BatchesAhead, Path) => Unit): Unit =
    TempDir { directory =>
      val file   = directory.resolve("one.safetensors")
      val header = (0 until 3).map(i => s""""t$i":["U8",[$Size],[${i * Size},${(i + 1) * Size}]]""")
      Files.write(file, Bytes.file(header.mkString("{", ",", "}"), data = 3 * Size))
      val part = FilePart(DataFile.at(s"$scheme://$file", Files.size(file)))
      val columns =
        Vector(RowColumn.Key, RowColumn.Tensor("tensor", Vector(TensorField.Data), nullable = false))
      val rows = LongRows(columns, Conditions(Vector.empty))
      val ahead =
        new BatchesAhead(new RowBatches(Seq(part), rows, limit,
            new TaskState(RepeatedNames.LastCounts, caseSensitive = false, IgnoredFiles.None, conf)))
      try body(ahead, file)
      finally ahead.close()
    }

  private def keys(batch: RowBatch): Seq[String] = batch.rows.map(_.getUTF8String(0).toString).toSeq

  private def threads: Iterable[Thread] =
    Thread.getAllStackTraces.keySet.asScala.filter(thread =>
      thread.getName == "safetensors-read-ahead" && thread.isAlive)

  test("the next batch is read before it is asked for, and no further one") {
    val (_, _) = Requests.during {
      batches("counted") { (ahead, _) =>
        assert(keys(ahead.next()) == Seq("t0"))
        eventually(assert(Requests.so("one.safetensors").ranges.count(_._2 == Size) == 2))
        assert(keys(ahead.next()) == Seq("t1") && keys(ahead.next()) == Seq("t2"))
        assert(ahead.next().rows.isEmpty && ahead.next().rows.isEmpty)
        assert(Requests.so("one.safetensors").ranges.count(_._2 == Size) == 3)
      }
    }
  }

  test("bytes of rows behind a limit are not read") {
    val (_, requests) = Requests.during {
      batches("counted", limit = Some(1)) { (ahead, _) =>
        assert(keys(ahead.next()) == Seq("t0") && ahead.next().rows.isEmpty)
      }
    }
    assert(requests("one.safetensors").ranges.count(_._2 == Size) == 1)
  }

  test("an error of a batch that was read ahead is thrown when the batch is asked for") {
    batches("counted") { (ahead, file) =>
      Files.write(file, Files.readAllBytes(file).take(Size + 1000))
      assert(keys(ahead.next()) == Seq("t0"))
      val error = intercept[UnreadableFileException](ahead.next())
      assert(error.getMessage.contains("one.safetensors has changed since"))
    }
  }

  test("a read that is under way ends with the task, and so does its thread") {
    batches("stuck") { (ahead, _) =>
      assert(keys(ahead.next()) == Seq("t0"))
      eventually(assert(StuckFileSystem.isStuck))
      ahead.close()
      eventually(assert(threads.isEmpty))
    }
  }

  test("the reading thread closes the file, also if the task's thread is interrupted") {
    batches("stuck") { (ahead, _) =>
      assert(keys(ahead.next()) == Seq("t0"))
      eventually(assert(StuckFileSystem.isStuck))
      StuckFileSystem.closer = None
      Thread.currentThread.interrupt()
      ahead.close()
      assert(Thread.interrupted())
      eventually(assert(StuckFileSystem.closer.contains("safetensors-read-ahead") && threads.isEmpty))
    }
  }

  test("no thread is left after the last batch") {
    batches("counted") { (ahead, _) =>
      Iterator.continually(ahead.next()).takeWhile(_.rows.nonEmpty).foreach(_ => ())
      ahead.close()
      eventually(assert(threads.isEmpty))
    }
  }
}

package io.github.semyonsinchenko.safetensors.write

import java.io.IOException
import java.nio.file.{Files, Path => LocalPath}
import java.util.UUID
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.concurrent.{Await, Future}
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration.DurationInt
import scala.util.Try

import org.apache.hadoop.fs.Path

/** Writes whose dataset changes while their tasks run: what depends on its state is decided when they commit. */
class RaceTest extends FaultyWrites("local[2]") {
  private val old   = 0 until 6
  private val fresh = 100 until 112

  /** Appends `fresh`, and lets `meanwhile` happen when a task is at the row of number `at`. */
  private def append(
      directory: LocalPath,
      options: Options,
      at: Int = fresh.head)(meanwhile: => Unit): Unit = {
    Race.begin(at)
    val written = Future(write(rows(fresh, Race.pause), directory, "append", options))
    try { Race.awaitPause(); meanwhile }
    finally Race.end()
    Await.result(written, 60.seconds)
  }

  test("an append keeps the index of a write that committed after it was planned, and adds its own keys") {
    inDataset { directory =>
      write(rows(old), directory, "append", keyValue)
      append(directory, keyValue)(write(rows(200 until 206), directory, "append", indexed))
      val all = old ++ (200 until 206) ++ fresh
      assert(seen(directory, keyValue) == all)
      assert(keys(directory).exists(_.sorted == all.sorted))
      assert(leftovers(directory).isEmpty)
    }
  }

  test("an append that repeats a key of such a write fails, and leaves that write") {
    inDataset { directory =>
      write(rows(old), directory, "append", keyValue)
      val late =
        Try(append(directory, keyValue)(write(rows(110 until 116), directory, "append", indexed)))
      assert(late.failed.get.getMessage.contains("The key `110` is in two shards"))
      assert(seen(directory, keyValue) == old ++ (110 until 116))
      assert(keys(directory).exists(_.sorted == old ++ (110 until 116)))
      assert(leftovers(directory).isEmpty)
    }
  }

  test("an append to a dataset whose index another write has removed makes none") {
    inDataset { directory =>
      write(rows(old), directory, "append", indexed)
      append(directory, keyValue)(write(rows(200 until 206), directory, "overwrite", keyValue))
      assert(seen(directory, keyValue) == (200 until 206) ++ fresh)
      assert(!Files.exists(directory.resolve("_tensor_index.parquet")))
      assert(leftovers(directory).isEmpty)
    }
  }

  test("a first write into a directory that meanwhile holds other files is refused, and leaves them") {
    inDataset { directory =>
      val late = Try(append(directory, batch)(Files.write(
          Files.createDirectories(directory).resolve("other.safetensors"),
          Array[Byte](1))))
      assert(late.failed.get.getMessage.contains("is not a dataset of safetensors"))
      assert(leftovers(directory) == Seq("other.safetensors"))
    }
  }

  test("no shard is in the directory before the manifest, even if version 2 of Hadoop's algorithm is set") {
    inDataset { directory =>
      val version2 = batch + ("mapreduce.fileoutputcommitter.algorithm.version" -> "2")
      append(directory, version2, at = fresh.last) {
        eventually(assert(completedTasks == 1))
        assert(leftovers(directory).nonEmpty && leftovers(directory).forall(_.startsWith("_temporary/")))
      }
      assert(seen(directory, batch) == fresh)
    }
  }

  test("a write whose lock is taken while it commits changes nothing, and leaves the other write") {
    inDataset { directory =>
      write(rows(old), directory, "append", batch)
      val late = Faults.before(Step("rename", "/part-.*.safetensors$")) {
        Files.delete(directory.resolve("_commit.lock"))
        writer(rows(200 until 206), "append", batch).save(directory.toString)
      }(Try(write(rows(fresh), directory, "append", batch)))
      assert(late.failed.get.getMessage.contains("was lost to another write"))
      assert(seen(directory, batch) == old ++ (200 until 206))
      assert(leftovers(directory).isEmpty)
    }
  }

  test("a write whose manifest arrived with an error succeeds, although another write has appended since") {
    inDataset { directory =>
      write(rows(old), directory, "append", batch)
      Faults.before(Step("answer", "/dataset_manifest.json$")) {
        Files.delete(directory.resolve("_commit.lock"))
        writer(rows(200 until 206), "append", batch).save(directory.toString)
        throw new IOException("no answer")
      }(write(rows(fresh), directory, "append", batch))
      assert(seen(directory, batch) == old ++ fresh ++ (200 until 206))
      assert(leftovers(directory).isEmpty)
    }
  }

  test("a write that lost the lock at its manifest does not say that nothing was changed") {
    inDataset { directory =>
      write(rows(old), directory, "append", batch)
      val late = Faults.before(Step("close", "/dataset_manifest.json$")) {
        Files.delete(directory.resolve("_commit.lock"))
        writer(rows(200 until 206), "append", batch).save(directory.toString)
        throw new IOException("no connection")
      }(Try(write(rows(fresh), directory, "append", batch)))
      assert(late.failed.get.getMessage.contains("It is unknown whether"))
      assert(seen(directory, batch) == old ++ (200 until 206))
      assert(leftovers(directory).isEmpty)
    }
  }

  test("an overwrite that fails leaves the shards of a damaged manifest, though a record names them") {
    inDataset { directory =>
      write(rows(old), directory, "append", batch)
      val before = shards(directory).map(shard => new Path(shard).getName)
      Files.writeString(directory.resolve("dataset_manifest.json"), "{")
      val record = Files.createDirectory(directory.resolve("_pending")).resolve(UUID.randomUUID().toString)
      Files.writeString(record, before.mkString("\n"))
      val failed = Faults.during(Step("close", "/dataset_manifest.json$"), forGood = false)(
        Try(write(rows(fresh), directory, "overwrite", batch)))
      assert(failed.isFailure)
      assert(before.forall(shard => Files.exists(directory.resolve(shard))))
    }
  }

  private def completedTasks: Int = {
    val tracker = spark.sparkContext.statusTracker
    tracker.getActiveStageIds().flatMap(tracker.getStageInfo(_)).map(_.numCompletedTasks()).sum
  }
}

/** Where a task waits; apart from the suite, which does not travel. */
private object Race {
  @volatile private var number = -1
  @volatile private var paused = new CountDownLatch(1)
  @volatile private var ended  = new CountDownLatch(1)

  def begin(at: Int): Unit = {
    number = at
    paused = new CountDownLatch(1)
    ended = new CountDownLatch(1)
  }

  def pause(at: Int): Unit = if (at == number) {
    paused.countDown()
    ended.await(60, TimeUnit.SECONDS)
    ()
  }

  def awaitPause(): Unit = assert(paused.await(60, TimeUnit.SECONDS))

  def end(): Unit = ended.countDown()
}

package io.github.semyonsinchenko.safetensors.write

import java.nio.file.{Files, Path => LocalPath}
import java.nio.file.attribute.FileTime
import java.time.{Duration, Instant}

import scala.jdk.CollectionConverters._

import io.github.semyonsinchenko.safetensors.write.commit.LockRecord

/** Whatever fails, and whether or not the writer is there to clean up: readers see the old dataset or the new one. */
class FailureTest extends FaultyWrites("local[2]") {
  private val old     = 0 until 6
  private val fresh   = 100 until 112
  private val another = 200 until 206

  /** A step of a write, which readers see nothing of. */
  private val points = Seq(
    "setting the job up"              -> Step("mkdirs", "/_temporary/\\d+$"),
    "creating a shard"                -> Step("create", "/part-00001-.*0001.safetensors$"),
    "writing in the middle of one"    -> Step("write", "/part-00001-.*0000.safetensors$", 2),
    "closing a shard"                 -> Step("close", "/part-00000-.*.safetensors$"),
    "committing a task"               -> Step("rename", "/_temporary/\\d+/_temporary/attempt_[^/]*$"),
    "committing the job"              -> Step("list", "/_temporary/\\d+$"),
    "moving the third shard of a job" -> Step("rename", "/part-.*.safetensors$", 3),
    "deleting the job's files"        -> Step("delete", "/_temporary/\\d+$"),
    "creating the lock"               -> Step("create", "/_commit.lock$"),
    "writing the lock"                -> Step("write", "/_commit.lock$"),
    "closing the lock"                -> Step("close", "/_commit.lock$"),
    "reading the old manifest"        -> Step("open", "/dataset_manifest.json$", 2),
    "creating the commit's record"    -> Step("create", "/_pending/"),
    "writing the commit's record"     -> Step("write", "/_pending/"),
    "closing the commit's record"     -> Step("close", "/_pending/"),
    "looking if the lock is held"     -> Step("open", "/_commit.lock$"),
    "creating the manifest"           -> Step("create", "/dataset_manifest.json$"),
    "writing the manifest"            -> Step("write", "/dataset_manifest.json$"),
    "closing the manifest"            -> Step("close", "/dataset_manifest.json$")
  )

  /** A step after the manifest took effect. */
  private val late = Seq(
    "the answer about the manifest" -> Step("answer", "/dataset_manifest.json$"),
    "releasing the lock"            -> Step("delete", "/_commit.lock$")
  )
  private val deletion = Seq("deleting an old shard" -> Step("delete", "/part-.*.safetensors$", 2))

  /** A step of the index, which is made before the job commits and put in its place before the manifest. */
  private val indexPoints = Seq(
    "creating a task's run of the index" -> Step("create", "/_index-.*.run$", 2),
    "closing a task's run of the index"  -> Step("close", "/_index-.*.run$"),
    "creating the index"                 -> Step("create", "/._tensor_index.parquet.*.tmp$"),
    "writing the index"                  -> Step("write", "/._tensor_index.parquet.*.tmp$", 2),
    "putting the index in its place"     -> Step("rename", "/._tensor_index.parquet.*.tmp$"),
    "the manifest behind the index"      -> Step("create", "/dataset_manifest.json$")
  )

  private val keyed =
    Set("writing in the middle of one", "moving the third shard of a job", "closing the manifest")

  for (mode <- Seq("append", "overwrite")) {
    points.foreach { case (what, step) => test(s"batch $mode, $what", mode, batch, step) }
    points.filter(point => keyed(point._1)).foreach { case (what, step) =>
      // A task has one shard.
      test(s"key-value $mode, $what", mode, keyValue, if (step.nth == 3) step.copy(nth = 2) else step)
    }
    indexPoints.foreach { case (what, step) => test(s"indexed $mode, $what", mode, indexed, step) }
  }

  private def test(name: String, mode: String, options: Options, step: Step): Unit = {
    test(s"$name fails")(fails(name, mode, options, step))
    test(s"$name is the last that the writer does")(dies(name, mode, options, step))
  }

  for (mode      <- Seq("append", "overwrite");
    (what, step) <- if (mode == "overwrite") late ++ deletion else late) {
    test(s"batch $mode, $what fails")(failsLate(s"batch $mode, $what", mode, step))
    test(s"batch $mode, $what is the last that the writer does")(diesLate(s"batch $mode, $what", mode, step))
  }

  private val firstPoints = points.filter(point => keyed(point._1)) ++ Seq(
    "closing the commit's record"      -> Step("close", "/_pending/"),
    "closing the manifest of its rows" -> Step("close", "/dataset_manifest.json$", 2)
  )

  for ((what, step) <- firstPoints) {
    test(s"first write, $what fails") {
      inDataset { directory =>
        failing(directory, "append", batch, step, forGood = false)
        assert(leftovers(directory).isEmpty)
        assert(messageOf(seen(directory, batch)).contains("holds no safetensors files"))
        info(s"first write, $what: the reader saw no dataset; left: nothing")
        write(rows(fresh), directory, "append", batch)
        assert(seen(directory, batch) == fresh && leftovers(directory).isEmpty)
      }
    }

    test(s"first write, $what is the last that the writer does") {
      inDataset { directory =>
        failing(directory, "append", batch, step, forGood = true)
        val message = messageOf(seen(directory, batch))
        assert(
          message.contains("holds no safetensors files") || message.contains("The dataset has no shards"))
        info(s"first write, $what: the reader saw no rows; left: ${kinds(directory)}")
        assertRecovers(directory, "append", batch, fresh)
      }
    }
  }

  /** The old dataset stands, as if nothing had been, and a second try succeeds. */
  private def fails(name: String, mode: String, options: Options, step: Step): Unit = inDataset { directory =>
    write(rows(old), directory, "append", options)
    failing(directory, mode, options, step, forGood = false)
    tell(name, directory, options)
    assert(seen(directory, options) == old && leftovers(directory).isEmpty)
    assertOldIndex(directory, options)
    write(rows(fresh), directory, mode, options)
    assertNew(directory, mode, options)
    assert(leftovers(directory).isEmpty)
    if (options == indexed) assert(keys(directory).get.sorted == seen(directory, options).sorted)
  }

  /** The old dataset stands, beside leftovers, and a second try succeeds. */
  private def dies(name: String, mode: String, options: Options, step: Step): Unit = inDataset { directory =>
    write(rows(old), directory, "append", options)
    failing(directory, mode, options, step, forGood = true)
    tell(name, directory, options)
    assert(seen(directory, options) == old)
    assertOldIndex(directory, options)
    assertRecovers(directory, mode, options, if (mode == "append") old ++ fresh else fresh)
  }

  private def assertOldIndex(directory: LocalPath, options: Options): Unit = {
    if (options == indexed) assert(keys(directory).exists(_.sorted == old))
    ()
  }

  /** The next write removes what a commit that died has left; what jobs that died before have left goes in a week. */
  private def assertRecovers(
      directory: LocalPath,
      mode: String,
      options: Options,
      expected: Seq[Int]): Unit = {
    ageLock(directory)
    write(rows(fresh), directory, mode, options)
    assert(seen(directory, options) == expected)
    val left = leftovers(directory)
    assert(left.forall(file =>
        file.startsWith("_temporary") || file.startsWith("_index-") || file.startsWith(".")))
    Files.walk(directory).iterator.asScala.filterNot(_ == directory).foreach(age(_, Duration.ofDays(8)))
    write(rows(another), directory, "append", options)
    assert(seen(directory, options) == expected ++ another)
    assert(leftovers(directory).isEmpty)
    if (options == indexed) assert(keys(directory).get.sorted == (expected ++ another).sorted)
  }

  /** The write succeeds, as it would be repeated else; what could not be deleted is left. */
  private def failsLate(name: String, mode: String, step: Step): Unit = inDataset { directory =>
    write(rows(old), directory, "append", batch)
    Faults.during(step, forGood = false)(write(rows(fresh), directory, mode, batch))
    tell(name, directory, batch)
    assertNew(directory, mode, batch)
    // An old shard, and the record that names it.
    assert(leftovers(directory).size <= (if (step.operation == "delete") 2 else 0))
    again(directory, mode)
    assert(leftovers(directory).isEmpty)
  }

  /** The new dataset stands, though the writer may not know. */
  private def diesLate(name: String, mode: String, step: Step): Unit = inDataset { directory =>
    write(rows(old), directory, "append", batch)
    Faults.during(step, forGood = true) {
      if (step.operation == "answer")
        assert(messageOf(write(rows(fresh), directory, mode, batch)).contains(
            s"It is unknown whether the write to faulty:$directory took effect"))
      else write(rows(fresh), directory, mode, batch)
    }
    tell(name, directory, batch)
    assertNew(directory, mode, batch)
    again(directory, mode)
  }

  private def failing(
      directory: LocalPath,
      mode: String,
      options: Options,
      step: Step,
      forGood: Boolean): Unit =
    Faults.during(step, forGood) {
      val message = messageOf(write(rows(fresh), directory, mode, options))
      assert(message.contains(Faults.Message), message)
      awaitIdle()
    }

  private def messageOf(write: => Unit): String = intercept[Exception](write).getMessage

  private def assertNew(directory: LocalPath, mode: String, options: Options): Unit =
    assert(seen(directory, options) == (if (mode == "append") old ++ fresh else fresh))

  /** One more write, of other rows. */
  private def again(directory: LocalPath, mode: String): Unit = {
    ageLock(directory)
    write(rows(another), directory, mode, batch)
    assert(seen(directory, batch) == (if (mode == "append") old ++ fresh ++ another else another))
  }

  /** Makes the lock of a writer that died one that others take at once. */
  private def ageLock(directory: LocalPath): Unit = {
    val lock = directory.resolve("_commit.lock")
    if (Files.exists(lock)) Files.writeString(lock, LockRecord.of("dead", staleMillis = 0).toJson)
    ()
  }

  private def age(file: LocalPath, age: Duration): Unit = {
    Files.setLastModifiedTime(file, FileTime.from(Instant.now.minus(age)))
    ()
  }

  private def tell(name: String, directory: LocalPath, options: Options): Unit = {
    val numbers = seen(directory, options)
    val parts =
      Seq("the old rows" -> old, "the new rows" -> fresh).collect {
        case (what, rows) if numbers.containsSlice(rows) =>
          what
      }
    info(
      s"$name: the reader saw ${parts.mkString(" and ")}, ${numbers.size} in all; left: ${kinds(directory)}")
  }

  private def kinds(directory: LocalPath): String = {
    val named = leftovers(directory).map {
      case s"_temporary/$_"      => "files of tasks"
      case s"_index-$_"          => "runs of the index"
      case s"part-$_"            => "shards without a name in the manifest"
      case "_pending"            => "the commit's record"
      case s".$file.json.$_.tmp" => "a new manifest"
      case s".$file.parquet.$_"  => "a new index"
      case other                 => other
    }
    if (named.isEmpty) "nothing" else named.distinct.mkString(", ")
  }
}

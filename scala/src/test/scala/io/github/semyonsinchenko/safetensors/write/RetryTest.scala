package io.github.semyonsinchenko.safetensors.write

import java.util.concurrent.locks.LockSupport

import org.apache.spark.TaskContext

/** Tasks that fail and are tried again, or outlive their job: no row is lost or doubled, and no file is left. */
class RetryTest extends FaultyWrites("local[2,4]") {
  private val old   = 0 until 6
  private val fresh = 100 until 112

  private val steps = Seq(
    "creates a shard"                 -> Step("create", "/part-00001-.*0001.safetensors$"),
    "writes in the middle of a shard" -> Step("write", "/part-00001-.*0000.safetensors$", 2),
    "closes a shard"                  -> Step("close", "/part-00000-.*.safetensors$"),
    "commits"                         -> Step("rename", "/_temporary/\\d+/_temporary/attempt_[^/]*$")
  )

  for ((what, step) <- steps)
    test(s"a task that fails as it $what is tried again") {
      inDataset { directory =>
        write(rows(old), directory, "append", batch)
        Faults.during(step, forGood = false)(write(rows(fresh), directory, "append", batch))
        assert(seen(directory, batch) == old ++ fresh)
        assert(leftovers(directory).isEmpty)
      }
    }

  for ((mode, options) <- Seq("append" -> batch, "overwrite" -> keyValue))
    test(s"$mode: tasks whose rows fail at first are tried again") {
      inDataset { directory =>
        write(rows(old), directory, "append", options)
        write(rows(fresh, RetryTest.failAtFirst), directory, mode, options)
        assert(seen(directory, options) == (if (mode == "append") old ++ fresh else fresh))
        assert(leftovers(directory).isEmpty)
      }
    }

  test("a task that still runs when its job has failed leaves no file") {
    inDataset { directory =>
      write(rows(old), directory, "append", batch)
      val error =
        intercept[Exception](write(rows(fresh, RetryTest.failBesideASlowTask), directory, "append", batch))
      assert(error.getMessage.contains("row 105 fails"))
      awaitIdle()
      assert(seen(directory, batch) == old)
      assert(leftovers(directory).isEmpty)
    }
  }
}

/** What tasks do with their rows; apart from the suite, which does not travel. */
private object RetryTest {

  def failAtFirst(number: Int): Unit =
    if (TaskContext.get().attemptNumber() == 0 && number % 6 == 5) throw new IllegalStateException("not yet")

  def failBesideASlowTask(number: Int): Unit = {
    if (number == 105) throw new IllegalStateException("row 105 fails")
    // It does not hear that it is killed, as in a long call of a library.
    val end = System.nanoTime + 1500000000L
    while (number == 108 && System.nanoTime < end) LockSupport.parkNanos(end - System.nanoTime)
  }
}

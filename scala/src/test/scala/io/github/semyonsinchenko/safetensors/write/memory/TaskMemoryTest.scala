package io.github.semyonsinchenko.safetensors.write.memory

import java.lang.management.{BufferPoolMXBean, ManagementFactory}
import java.nio.ByteBuffer
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.apache.spark.memory.{MemoryConsumer, TaskMemoryManager}
import org.apache.spark.sql.SparkSession
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** What a task's pages take from Spark's memory. The tests run in tasks. */
abstract class TaskMemoryTest(settings: (String, String)*) extends AnyFunSuite with BeforeAndAfterAll {

  protected lazy val spark: SparkSession =
    SparkSession.builder().master("local[1]").config(
      settings.toMap + ("spark.ui.enabled" -> "false")).getOrCreate()

  override def afterAll(): Unit = spark.stop()

  protected def inTask[A: scala.reflect.ClassTag](body: () => A): A =
    spark.sparkContext.parallelize(Seq(1), 1).map(_ => body()).collect().head
}

object TaskMemoryTest {
  val Row: Array[Byte] = Array.tabulate(1 << 20)(i => (i * 31).toByte)
  val Rows             = 64

  def direct: Long = ManagementFactory.getPlatformMXBeans(classOf[BufferPoolMXBean]).asScala
    .filter(_.getName == "direct").map(_.getMemoryUsed).sum

  def consumed: Long = CurrentTask.memory().getMemoryConsumptionForThisTask

  /** Fills a payload with rows, measures, checks that the same bytes come out, and closes all. */
  def filled[A](measure: => A): A = {
    val pages   = Pages.forTask(1)
    val payload = new Payload(pages, () => SpillFile.create())
    try {
      for (_ <- 1 to Rows) payload.append(ByteBuffer.wrap(Row))
      val measured = measure
      var position = 0L
      payload.drain { bytes =>
        while (bytes.hasRemaining) {
          assert(bytes.get() == Row((position % Row.length).toInt))
          position += 1
        }
      }
      assert(position == Rows.toLong * Row.length)
      measured
    } finally {
      payload.close()
      pages.close()
    }
  }

  /** Memory that another operator of this task asks for and gives back. */
  def granted(bytes: Long, manager: TaskMemoryManager = CurrentTask.memory()): Long = {
    val other = new MemoryConsumer(manager, manager.getTungstenMemoryMode) {
      override def spill(size: Long, trigger: MemoryConsumer): Long = 0
    }
    val part = other.acquireMemory(bytes)
    other.freeMemory(part)
    part
  }

  /** The files that this process has open under this name, though they are deleted. */
  def openFiles(name: String): Seq[Path] =
    Files.list(Paths.get("/proc/self/fd")).iterator.asScala.toSeq.filter(fd =>
      Files.isSymbolicLink(fd) && Files.readSymbolicLink(fd).toString.contains(name))
}

class HeapTaskMemoryTest extends TaskMemoryTest {
  import TaskMemoryTest._

  test("pages are Spark's execution memory on the heap, and given back") {
    val (inside, outside, after) = inTask { () =>
      val before            = direct
      val (inside, outside) = filled((consumed, direct - before))
      (inside, outside, consumed)
    }
    assert(inside >= Rows.toLong * Row.length && inside < (Rows + 18L) * Row.length)
    assert(outside < (2 << 20) && after == 0)
  }

  test("another operator of the task gets memory that pages have, which move to disk") {
    val (pool, part) = inTask { () =>
      val pool = granted(Long.MaxValue)
      (pool, filled(granted(pool - (18 << 20))))
    }
    assert(part == pool - (18 << 20))
  }

  test("an operator of the task in another thread gets none, as a row may be half written") {
    val spilled = inTask { () =>
      val manager = CurrentTask.memory()
      val pool    = granted(Long.MaxValue, manager)
      filled {
        val before = consumed
        val thread = new Thread(() => { granted(pool, manager); () })
        thread.start()
        thread.join()
        before - consumed
      }
    }
    assert(spilled == 0)
  }
}

class OffHeapTaskMemoryTest
    extends TaskMemoryTest("spark.memory.offHeap.enabled" -> "true", "spark.memory.offHeap.size" -> "8m") {
  import TaskMemoryTest._

  test("pages are off the heap within the size that Spark has there, and the rest is on disk") {
    val (inside, files, after) = inTask { () =>
      val (inside, files) = filled((consumed, openFiles("temp_local_").map(Files.size(_)).sum))
      (inside, files, consumed)
    }
    assert(inside > 0 && inside <= (8 << 20) && after == 0)
    if (Files.exists(Paths.get("/proc/self/fd"))) assert(files >= (Rows - 9L) * Row.length)
  }
}

class EncryptedTaskMemoryTest
    extends TaskMemoryTest(
      "spark.io.encryption.enabled"  -> "true",
      "spark.memory.offHeap.enabled" -> "true",
      "spark.memory.offHeap.size" -> "8m") {
  import TaskMemoryTest._

  test("spill files are encrypted") {
    assume(Files.exists(Paths.get("/proc/self/fd")), "only Linux shows deleted files")
    val (size, isPlain) = inTask { () =>
      filled {
        val contents =
          openFiles("temp_local_").map(file => new String(Files.readAllBytes(file), "ISO-8859-1"))
        val row = new String(Row.take(64), "ISO-8859-1")
        (contents.map(_.length.toLong).sum, contents.exists(_.contains(row)))
      }
    }
    assert(size >= (Rows - 9L) * Row.length && !isPlain)
  }
}

package io.github.semyonsinchenko.safetensors.write.commit

import java.io.IOException
import java.net.URI
import java.nio.file.{Files, Path => LocalPath}
import java.nio.file.attribute.FileTime
import java.util.concurrent.atomic.AtomicInteger

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FilterFileSystem, Path, RawLocalFileSystem}
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir

class CommitLockTest extends AnyFunSuite {
  private val conf = new Configuration

  private def acquire(directory: LocalPath, patienceMillis: Long = 60000): CommitLock =
    CommitLock.acquire(new Path(directory.toUri), conf, patienceMillis)

  test("one holds it at a time, and it is gone afterwards") {
    TempDir { directory =>
      val inside = new AtomicInteger
      val most   = new AtomicInteger
      val threads = Seq.fill(8)(new Thread(() =>
          for (_ <- 1 to 5) Using.resource(acquire(directory)) { _ =>
            most.accumulateAndGet(inside.incrementAndGet(), math.max(_, _))
            Thread.sleep(1)
            inside.decrementAndGet()
          }))
      threads.foreach(_.start())
      threads.foreach(_.join())
      assert(most.get == 1 && inside.get == 0)
      assert(TempDir.names(directory).isEmpty)
    }
  }

  test("who waits too long is told what to do") {
    TempDir { directory =>
      Using.resource(acquire(directory)) { _ =>
        val error = intercept[IOException](acquire(directory, patienceMillis = 300))
        assert(
          error.getMessage.startsWith("Another write holds ") && error.getMessage.contains("delete the file"))
      }
    }
  }

  test("the lock of a writer that died is taken away, and a writer that stood still does not go on") {
    TempDir { directory =>
      val dead = acquire(directory)
      Files.setLastModifiedTime(directory.resolve("_commit.lock"),
        FileTime.fromMillis(System.currentTimeMillis - 301000))
      Using.resource(acquire(directory)) { alive =>
        alive.verify()
        assert(intercept[IOException](dead.verify()).getMessage.contains("was lost to another write"))
        dead.close()
        alive.verify()
      }
      assert(TempDir.names(directory).isEmpty)
    }
  }

  test("a heartbeat shows where a file's time changes by writing alone, and does not take a lost lock back") {
    TempDir { directory =>
      val file = directory.resolve("_commit.lock")
      val old  = FileTime.fromMillis(System.currentTimeMillis - 200000)
      val conf = new Configuration
      conf.setClass("fs.timeless.impl", classOf[TimelessFileSystem], classOf[FileSystem])
      Using.resource(CommitLock.acquire(new Path(s"timeless:$directory"), conf)) { lock =>
        Files.setLastModifiedTime(file, old)
        lock.touch()
        assert(Files.getLastModifiedTime(file).compareTo(old) > 0)
        lock.verify()
        Files.writeString(file, "another")
        lock.touch()
        assert(Files.readString(file) == "another")
      }
    }
  }

  test("a directory that is not there yet is made") {
    TempDir { directory =>
      Using.resource(acquire(directory.resolve("new")))(_.verify())
    }
  }
}

/** Files of this machine whose times cannot be set, as in an object store. */
final class TimelessFileSystem extends FilterFileSystem(new TimelessFileSystem.Local) {
  override def setTimes(path: Path, changed: Long, read: Long): Unit = ()
}

object TimelessFileSystem {

  private final class Local extends RawLocalFileSystem {
    override def getUri: URI = URI.create("timeless:///")
  }
}

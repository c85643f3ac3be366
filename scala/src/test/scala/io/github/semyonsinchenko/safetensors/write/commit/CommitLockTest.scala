package io.github.semyonsinchenko.safetensors.write.commit

import java.io.IOException
import java.net.URI
import java.nio.file.{Files, Path => LocalPath}
import java.nio.file.attribute.FileTime
import java.util.concurrent.CompletableFuture
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicInteger

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.util.Progressable
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir

class CommitLockTest extends AnyFunSuite {
  private val conf = new Configuration

  private def acquire(directory: LocalPath, staleMillis: Long = 60000): CommitLock =
    LockWait.acquire(new Path(directory.toUri), LockRecord.of("test", staleMillis), conf)

  /** Acquires the lock in another thread. */
  private def waiting(directory: LocalPath): CompletableFuture[CommitLock] =
    CompletableFuture.supplyAsync(() => acquire(directory))

  private def lockIn(directory: LocalPath): LocalPath = directory.resolve("_commit.lock")

  /** What a holder that died leaves. */
  private def deadLock(directory: LocalPath, staleMillis: Long = 100): Unit = {
    Files.writeString(lockIn(directory), LockRecord.of("dead", staleMillis).toJson)
    ()
  }

  test("one holds it at a time, and it is gone afterwards") {
    TempDir { directory =>
      val inside = new AtomicInteger
      val most   = new AtomicInteger
      deadLock(directory)
      val threads = Seq.fill(8)(new Thread(() =>
          for (_ <- 1 to 5) Using.resource(acquire(directory)) { lock =>
            most.accumulateAndGet(inside.incrementAndGet(), math.max(_, _))
            Thread.sleep(1)
            lock.verify()
            inside.decrementAndGet()
          }))
      threads.foreach(_.start())
      threads.foreach(_.join())
      assert(most.get == 1 && inside.get == 0)
      assert(TempDir.names(directory).isEmpty)
    }
  }

  test("the lock of a dead holder is taken") {
    TempDir { directory =>
      deadLock(directory)
      Using.resource(acquire(directory))(_.verify())
      assert(TempDir.names(directory).isEmpty)
    }
  }

  test("a holder that lives keeps the lock for longer than it may be silent, whatever the clocks say") {
    TempDir { directory =>
      val holder = acquire(directory, staleMillis = 400)
      Files.setLastModifiedTime(lockIn(directory), FileTime.fromMillis(0))
      val other = waiting(directory)
      Thread.sleep(1500)
      assert(!other.isDone)
      holder.verify()
      holder.close()
      Using.resource(other.get(60, SECONDS))(_.verify())
      assert(TempDir.names(directory).isEmpty)
    }
  }

  test("a holder that lost the lock does not go on, and leaves the next holder's") {
    TempDir { directory =>
      val lost = acquire(directory)
      Files.delete(lockIn(directory))
      Using.resource(acquire(directory)) { next =>
        assert(intercept[IOException](lost.verify()).getMessage.contains("was lost to another write"))
        lost.close()
        next.verify()
      }
      assert(TempDir.names(directory).isEmpty)
    }
  }

  test("a holder that was silent for long goes on only if no other write is taking its lock") {
    TempDir { directory =>
      val path   = new Path(lockIn(directory).toUri)
      val record = LockRecord.of("silent", 60000)
      Files.writeString(lockIn(directory), record.toJson)
      val claim = directory.resolve(LockState.takeoverFile(path, record.toJson).getName)
      val long  = System.nanoTime - SECONDS.toNanos(70)
      Using.resource(new CommitLock(path, record, long, path.getFileSystem(conf))) { holder =>
        Files.createFile(claim)
        assert(!holder.isHeld)
        Files.delete(claim)
        assert(holder.isHeld)
      }
      assert(TempDir.names(directory).isEmpty)
    }
  }

  test("a waiting write removes only the lock that it has watched") {
    TempDir { directory =>
      val slow = new Configuration
      slow.setClass("fs.slow.impl", classOf[SlowFileSystem], classOf[FileSystem])
      deadLock(directory)
      // Another write takes the dead lock just before the waiting one does.
      val taken = new CompletableFuture[CommitLock]
      SlowFileSystem.beforeTakeover = () => if (!taken.isDone) { taken.complete(acquire(directory)); () }
      val waiting = CompletableFuture.supplyAsync(() =>
        LockWait.acquire(new Path(s"slow:$directory"), LockRecord.of("slow"), slow))
      val next = taken.get(60, SECONDS)
      Thread.sleep(500)
      next.verify()
      assert(!waiting.isDone)
      next.close()
      Using.resource(waiting.get(60, SECONDS))(_.verify())
      assert(TempDir.names(directory).isEmpty)
    }
  }

  test("the lock of a dead holder is taken although another write died when it took it") {
    TempDir { directory =>
      deadLock(directory)
      val claim =
        LockState.takeoverFile(new Path(lockIn(directory).toUri), Files.readString(lockIn(directory)))
      Files.writeString(directory.resolve(claim.getName), LockRecord.of("dead too", 100).toJson)
      Using.resource(acquire(directory))(_.verify())
      assert(TempDir.names(directory).isEmpty)
    }
  }

  test("a directory that is not there yet is made") {
    TempDir { directory =>
      Using.resource(acquire(directory.resolve("new")))(_.verify())
    }
  }
}

/** Local files, but for a pause before a write creates the file by which it takes a lock. */
final class SlowFileSystem extends FilterFileSystem(new SlowFileSystem.Local) {

  override def create(
      path: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable): FSDataOutputStream = {
    if (path.getName.endsWith(".takeover")) SlowFileSystem.beforeTakeover()
    super.create(path, permission, overwrite, bufferSize, replication, blockSize, progress)
  }
}

object SlowFileSystem {
  @volatile var beforeTakeover: () => Unit = () => ()

  private final class Local extends RawLocalFileSystem {
    override def getUri: URI = URI.create("slow:///")
  }
}

package io.github.semyonsinchenko.safetensors.write.commit

import java.io.IOException
import java.nio.file.Files
import java.util.concurrent.{Executors, ScheduledExecutorService, TimeUnit}

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileSystem, Path}
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.common.UserThreads
import io.github.semyonsinchenko.safetensors.storage.LocalFile

/**
 * The lock that lets one write at a time change a dataset, held by this write. [[LockWait]] acquires it.
 *
 * @param acquired a `System.nanoTime` before the lock was there
 */
private[commit] final class CommitLock(path: Path, record: LockRecord, acquired: Long, fs: FileSystem)
    extends AutoCloseable {
  private val log      = LoggerFactory.getLogger(getClass)
  private val text     = record.toJson
  private val alive    = LockState.aliveFile(path, record.id)
  private var beats    = 0
  private var lastBeat = acquired
  private var isClosed = false

  private val heartbeat: ScheduledExecutorService =
    Executors.newSingleThreadScheduledExecutor(UserThreads.factory(s"heartbeat of $path"))
  private val interval = math.max(1, record.staleMillis / 10)
  heartbeat.scheduleWithFixedDelay(() => beat(), interval, interval, TimeUnit.MILLISECONDS)

  /** Shows waiting writes that this one lives, by a file that gets longer. */
  private def beat(): Unit = synchronized {
    if (!isClosed)
      try {
        val begun = System.nanoTime
        beats += 1
        write(new Array[Byte](beats))
        lastBeat = begun
      } catch { case NonFatal(e) => log.warn(s"Could not write $alive. Other writes may take the lock.", e) }
  }

  private def write(bytes: Array[Byte]): Unit = LocalFile.of(alive, fs) match {
    case Some(file) => Files.write(file, bytes); ()
    case None =>
      val out = fs.create(alive, true)
      try out.write(bytes)
      finally out.close()
  }

  /** @throws LostLockException if another write has taken the lock, or may be doing it */
  def verify(): Unit = if (!isHeld) throw new LostLockException(
    s"$path was lost to another write, because this one paused for more than ${record.staleMillis / 1000} seconds. Nothing was " +
      "changed; write again.")

  def isHeld: Boolean = synchronized {
    (isFresh || isRenewed) && LockState.textOf(path, fs).contains(text)
  }

  /** Whether no waiting write can have seen this lock unchanged for long enough. */
  private def isFresh: Boolean =
    System.nanoTime - lastBeat < TimeUnit.MILLISECONDS.toNanos(record.staleMillis) / 5

  // A write that takes over creates its file first, and then looks for a sign of life. So one of the two notices the other.
  private def isRenewed: Boolean = {
    beat()
    isFresh && !fs.exists(LockState.takeoverFile(path, text))
  }

  override def close(): Unit = synchronized {
    heartbeat.shutdown()
    // What was done under the lock is done. An error would make the caller repeat it.
    try {
      if (!isHeld) log.warn(s"$path was lost to another write, so it is not deleted.")
      else if (!fs.delete(path, false))
        log.warn(s"$path was not deleted. Other writes wait until it is stale.")
      isClosed = true
      if (beats > 0) fs.delete(alive, false)
      ()
    } catch {
      case NonFatal(e) => log.warn(s"Could not delete $path. Other writes wait until it is stale.", e)
    }
  }
}

/** Another write has taken the lock before this one replaced the manifest. */
private[commit] final class LostLockException(message: String) extends IOException(message)

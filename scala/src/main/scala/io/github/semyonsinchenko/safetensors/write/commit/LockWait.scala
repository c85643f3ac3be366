package io.github.semyonsinchenko.safetensors.write.commit

import java.util.concurrent.TimeUnit

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.dataset.DatasetFiles
import io.github.semyonsinchenko.safetensors.storage.ExclusiveFile

/**
 * A write that waits for the lock of its dataset, `_commit.lock`, a file that only one write can create.
 *
 * It waits as long as the holder lives. It takes the lock of a dead holder, which it detects by its own clock and by what it sees
 * itself: other machines' clocks may differ. The lock that it removes is the one that it has watched. For that, it must be the
 * only one that removes it, which needs a lock again, named after the lock that is removed.
 */
private[commit] final class LockWait private (path: Path, record: LockRecord, fs: FileSystem) {
  import LockWait._

  private val begun = System.nanoTime
  private val seen  = mutable.HashMap.empty[Path, Seen]
  private var tell  = begun + FirstReportNanos

  private def acquire(): CommitLock = {
    var before = System.nanoTime
    while (!attempt(path)) {
      report()
      Thread.sleep(pauseMillis)
      before = System.nanoTime
    }
    new CommitLock(path, record, before, fs)
  }

  /** Creates the lock, or removes one that is stale. Whether it was created. */
  private def attempt(lock: Path): Boolean = ExclusiveFile.create(lock, record.toJson, fs) || {
    LockState.of(lock, fs).filter(isStale(lock, _)).foreach(remove(lock, _))
    false
  }

  private def isStale(lock: Path, state: LockState): Boolean = {
    if (!seen.get(lock).exists(_.state == state)) seen(lock) = Seen(state, System.nanoTime)
    System.nanoTime - seen(lock).since > TimeUnit.MILLISECONDS.toNanos(state.staleMillis)
  }

  private def remove(lock: Path, state: LockState): Unit = {
    val claim = LockState.takeoverFile(lock, state.text)
    if (attempt(claim))
      try if (LockState.of(lock, fs).contains(state)) {
          log.warn(
            s"$lock is removed: it has not changed for ${state.staleMillis / 1000} s, so its holder is dead " +
              s"(${describe(state)}).")
          fs.delete(lock, false)
          state.holder.foreach(holder => fs.delete(LockState.aliveFile(lock, holder.id), false))
        }
      finally { fs.delete(claim, false); () }
  }

  private def report(): Unit = for (Seen(state, since) <- seen.get(path)) {
    val now = System.nanoTime
    if (now > tell) {
      tell = now + ReportNanos
      log.warn(s"This write has waited for ${TimeUnit.NANOSECONDS.toSeconds(now - begun)} s for another one, which holds $path " +
        s"(${describe(state)}). That one has shown no sign of life for ${TimeUnit.NANOSECONDS.toSeconds(now - since)} s; after " +
        s"${state.staleMillis / 1000} s its lock is removed.")
    }
  }

  private def describe(state: LockState): String =
    state.holder.fold("it does not say whose it is")(_.toString)

  // More and more seldom, as each attempt is several requests to an object store.
  private def pauseMillis: Long =
    math.min(LongestPauseMillis,
      ShortestPauseMillis + TimeUnit.NANOSECONDS.toMillis(System.nanoTime - begun) / 20)
}

private[write] object LockWait {
  private val log = LoggerFactory.getLogger(classOf[LockWait])

  private val FirstReportNanos    = TimeUnit.SECONDS.toNanos(2)
  private val ReportNanos         = TimeUnit.SECONDS.toNanos(30)
  private val ShortestPauseMillis = 50L
  private val LongestPauseMillis  = 1000L

  private final case class Seen(state: LockState, since: Long)

  /** The lock of the dataset in `directory`, when no other write holds it. */
  def acquire(directory: Path, record: LockRecord, conf: Configuration): CommitLock = {
    val path = new Path(directory, DatasetFiles.CommitLock)
    val fs   = path.getFileSystem(conf)
    fs.mkdirs(directory)
    new LockWait(path, record, fs).acquire()
  }
}

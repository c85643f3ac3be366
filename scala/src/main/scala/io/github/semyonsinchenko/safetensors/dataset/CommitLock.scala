package io.github.semyonsinchenko.safetensors.dataset

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, StandardOpenOption}
import java.util.UUID
import java.util.concurrent.{Executors, ScheduledExecutorService, TimeUnit}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.slf4j.LoggerFactory

/**
 * Lets one write at a time change a dataset's manifest: `_commit.lock`, a file that only one can create.
 *
 * Its holder touches it as long as it lives; one that was not touched for five minutes belongs to a dead writer and is
 * taken away. Object stores that overwrite what they should create give no such promise: there, concurrent writes to one
 * dataset are not supported.
 */
final class CommitLock private (path: Path, id: String, fs: FileSystem) extends AutoCloseable {
  import CommitLock._

  private val heartbeat: ScheduledExecutorService = Executors.newSingleThreadScheduledExecutor { task =>
    val thread = new Thread(task, s"heartbeat of $path")
    thread.setDaemon(true)
    thread
  }
  heartbeat.scheduleWithFixedDelay(() => touch(), HeartbeatMillis, HeartbeatMillis, TimeUnit.MILLISECONDS)

  private def touch(): Unit =
    try fs.setTimes(path, System.currentTimeMillis, -1)
    catch { case e: IOException => log.warn(s"$path could not be touched.", e) }

  /** @throws java.io.IOException if it was taken away, as from a writer that stood still for minutes */
  def verify(): Unit =
    if (!holder.contains(id)) throw new IOException(
      s"$path was lost to another write, as this one stood still for more than ${StaleMillis / 60000} minutes. Nothing was " +
        "changed; write again.")

  private def holder: Option[String] =
    try {
      val in = fs.open(path)
      try Some(new String(in.readAllBytes(), UTF_8))
      finally in.close()
    } catch { case _: FileNotFoundException => None }

  override def close(): Unit = {
    heartbeat.shutdownNow()
    // What was done under the lock is done: an error now would have the write repeated.
    try { if (holder.contains(id)) fs.delete(path, false); () }
    catch {
      case e: IOException => log.warn(s"$path could not be deleted; delete it, or writes will wait.", e)
    }
  }
}

object CommitLock {
  private val log = LoggerFactory.getLogger(classOf[CommitLock])

  val FileName = "_commit.lock"

  private val HeartbeatMillis = 30000L
  private val StaleMillis     = 300000L
  private val PollMillis      = 100L

  /**
   * Waits until no other holds the lock.
   *
   * @throws java.io.IOException if another holds it for longer than `patienceMillis`
   */
  def acquire(directory: Path, conf: Configuration, patienceMillis: Long = 600000L): CommitLock = {
    val path     = new Path(directory, FileName)
    val fs       = path.getFileSystem(conf)
    val id       = UUID.randomUUID().toString
    val deadline = System.nanoTime + patienceMillis * 1000000L
    fs.mkdirs(directory)
    while (!create(path, id, fs)) {
      if (System.nanoTime > deadline) throw new IOException(
        s"Another write holds $path. Wait for it, and write again; if none runs, delete the file.")
      if (isStale(path, fs)) remove(path, fs) else Thread.sleep(PollMillis)
    }
    new CommitLock(path, id, fs)
  }

  private def create(path: Path, id: String, fs: FileSystem): Boolean =
    try {
      LocalFile.of(path, fs) match {
        // Hadoop's own create looks first and creates then, so that two could succeed.
        case Some(file) => Files.write(file, id.getBytes(UTF_8), StandardOpenOption.CREATE_NEW)
        case None       => writeNew(path, id, fs)
      }
      true
    } catch {
      case _: FileAlreadyExistsException | _: java.nio.file.FileAlreadyExistsException => false
    }

  private def writeNew(path: Path, id: String, fs: FileSystem): Unit = {
    val out = fs.create(path, false)
    try {
      try out.write(id.getBytes(UTF_8))
      finally out.close()
    } catch {
      // It is this writer's own, and nobody would release it.
      case e: IOException =>
        try fs.delete(path, false)
        catch { case again: IOException => e.addSuppressed(again) }
        throw e
    }
  }

  private def isStale(path: Path, fs: FileSystem): Boolean =
    try System.currentTimeMillis - fs.getFileStatus(path).getModificationTime > StaleMillis
    catch { case _: FileNotFoundException => false }

  // Renaming, only one of several waiting writers succeeds; deleting, a slow one could delete the next holder's.
  private def remove(path: Path, fs: FileSystem): Unit = {
    val aside = new Path(path.getParent, s".${path.getName}.${UUID.randomUUID()}")
    log.warn(s"$path belongs to a write that died; it is removed.")
    if (fs.rename(path, aside)) { fs.delete(aside, false); () }
  }
}

package io.github.semyonsinchenko.safetensors.write.commit

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, StandardOpenOption}
import java.util.UUID
import java.util.concurrent.{Executors, ScheduledExecutorService, TimeUnit}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException
import org.apache.hadoop.ipc.RemoteException
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.storage.{AtomicFile, LocalFile}

/**
 * Lets one write at a time change a dataset's manifest: `_commit.lock`, a file that only one can create.
 *
 * Its holder touches it as long as it lives; one that was not touched for five minutes belongs to a dead writer and is
 * taken away. Object stores that overwrite what they should create give no such promise, such as S3A before Hadoop 3.4.2:
 * there, concurrent writes to one dataset are not supported.
 */
final class CommitLock private (path: Path, id: String, fs: FileSystem) extends AutoCloseable {
  import CommitLock._

  private val heartbeat: ScheduledExecutorService = Executors.newSingleThreadScheduledExecutor { task =>
    val thread = new Thread(task, s"heartbeat of $path")
    thread.setDaemon(true)
    thread
  }
  heartbeat.scheduleWithFixedDelay(() => touch(), HeartbeatMillis, HeartbeatMillis, TimeUnit.MILLISECONDS)

  /** Renews its time of change, if it is still this writer's. */
  private[commit] def touch(): Unit = synchronized {
    try if (isHeld) {
        val before = changed
        fs.setTimes(path, System.currentTimeMillis, -1)
        // Object stores keep the time of the last write alone.
        if (changed == before) write(fs.create(path, true), id)
      }
    catch { case NonFatal(e) => log.warn(s"$path could not be touched.", e) }
  }

  private def changed: Long = fs.getFileStatus(path).getModificationTime

  private def isHeld: Boolean = holder(path, fs).contains(id)

  /** @throws java.io.IOException if it was taken away, as from a writer that stood still for minutes */
  def verify(): Unit = synchronized {
    if (!isHeld) throw new IOException(
      s"$path was lost to another write, as this one stood still for more than ${StaleMillis / 60000} minutes. Nothing was " +
        "changed; write again.")
  }

  override def close(): Unit = synchronized {
    heartbeat.shutdown()
    // What was done under the lock is done: an error now would have the write repeated.
    try { if (isHeld) fs.delete(path, false); () }
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

  // Hadoop's name for it since 3.4.2, where S3A knows it.
  private val CreateIfAbsent = "fs.option.create.conditional.overwrite"

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
    try LocalFile.of(path, fs) match {
        // Hadoop's own create looks first and creates then, so that two could succeed.
        case Some(file) => Files.write(file, id.getBytes(UTF_8), StandardOpenOption.CREATE_NEW); true
        case None if fs.hasPathCapability(path, CreateIfAbsent) => writeIfAbsent(path, id, fs)
        case None                                               => writeNew(path, id, fs); true
      }
    catch {
      case _: FileAlreadyExistsException | _: java.nio.file.FileAlreadyExistsException => false
      case e: RemoteException if isOpen(e)                                             => false
    }

  /** Whether HDFS refused as another has created the file and not closed it yet. */
  private def isOpen(e: RemoteException): Boolean =
    e.unwrapRemoteException(classOf[AlreadyBeingCreatedException]) ne e

  private def writeNew(path: Path, id: String, fs: FileSystem): Unit = {
    val out = fs.create(path, false)
    try write(out, id)
    catch {
      // It is this writer's own, and nobody would release it.
      case e: IOException =>
        try fs.delete(path, false)
        catch { case again: IOException => e.addSuppressed(again) }
        throw e
    }
  }

  /** In an object store that looks whether there is one when it has the whole of the new one. */
  private def writeIfAbsent(path: Path, id: String, fs: FileSystem): Boolean =
    try {
      write(fs.createFile(path).recursive().must(CreateIfAbsent, true).build(), id)
      true
    } catch {
      case e: IOException => holder(path, fs) match {
          // The first of two requests may have arrived though it seemed to fail.
          case Some(found) => found == id
          // The one that was there is gone again.
          case None if e.isInstanceOf[PathIOException] => false
          case None                                    => throw e
        }
    }

  private def write(out: FSDataOutputStream, id: String): Unit =
    try out.write(id.getBytes(UTF_8))
    finally out.close()

  private def holder(path: Path, fs: FileSystem): Option[String] =
    AtomicFile.read(path, fs).map(new String(_, UTF_8))

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

package io.github.semyonsinchenko.safetensors.write.commit

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.hadoop.fs.{FileSystem, Path}

import io.github.semyonsinchenko.safetensors.storage.AtomicFile

/**
 * A lock file as it is found. While its holder lives, this changes.
 *
 * @param changed when the file was written, by the file system's clock
 * @param alive   length and time of the holder's sign of life; none before the first
 */
private[commit] final case class LockState(text: String, changed: Long, alive: Option[(Long, Long)]) {

  val holder: Option[LockRecord] = LockRecord.parse(text)

  def staleMillis: Long = holder.fold(LockRecord.StaleMillis)(_.staleMillis)
}

private[commit] object LockState {

  /** None if there is no lock. */
  def of(lock: Path, fs: FileSystem): Option[LockState] =
    for ((_, changed) <- timeOf(lock, fs); text <- textOf(lock, fs))
      yield LockState(text, changed,
        LockRecord.parse(text).flatMap(holder => timeOf(aliveFile(lock, holder.id), fs)))

  def textOf(lock: Path, fs: FileSystem): Option[String] = AtomicFile.read(lock, fs).map(new String(_, UTF_8))

  private def timeOf(file: Path, fs: FileSystem): Option[(Long, Long)] =
    try { val status = fs.getFileStatus(file); Some((status.getLen, status.getModificationTime)) }
    catch { case _: FileNotFoundException => None }

  /** The file by which a holder shows that it lives. */
  def aliveFile(lock: Path, id: String): Path = new Path(lock.getParent, s"_commit-$id.alive")

  /** The file that a write must create before it may remove the lock of this text. */
  def takeoverFile(lock: Path, text: String): Path =
    new Path(lock.getParent, s"_commit-${UUID.nameUUIDFromBytes(text.getBytes(UTF_8))}.takeover")
}

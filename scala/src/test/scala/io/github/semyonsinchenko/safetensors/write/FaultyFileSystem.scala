package io.github.semyonsinchenko.safetensors.write

import java.io.{ByteArrayOutputStream, IOException, OutputStream}
import java.net.URI

import org.apache.hadoop.fs._
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.util.Progressable

/** The `nth` of an operation on paths like `path`, a regular expression. */
final case class Step(operation: String, path: String, nth: Int = 1) {
  private val like = path.r.unanchored

  def matches(operation: String, path: Path): Boolean =
    operation == this.operation && like.matches(path.toUri.getPath)
}

/** Where every [[FaultyFileSystem]] of this JVM fails. */
object Faults {
  val Message = "The file system fails, as the test asks it to"

  private var armed: Option[Step]         = None
  private var forGood                     = false
  private var instead: Option[() => Unit] = None
  private var seen                        = 0

  /** Lets a step fail while `body` runs; `forGood`, whatever comes after it fails too, as if its process were dead. */
  def during[A](step: Step, forGood: Boolean)(body: => A): A = arm(step, forGood, None)(body)

  /** Lets `action` happen before a step while `body` runs. */
  def before[A](step: Step)(action: => Unit)(body: => A): A =
    arm(step, forGood = false, Some(() => action))(body)

  private def arm[A](step: Step, forGood: Boolean, instead: Option[() => Unit])(body: => A): A = {
    synchronized { armed = Some(step); this.forGood = forGood; this.instead = instead; seen = 0 }
    try body
    finally synchronized { armed = None; assert(seen >= step.nth, s"$step did not come") }
  }

  def pass(operation: String, path: Path): Unit = if (comes(operation, path)) instead match {
    case Some(action) => action()
    case None         => throw new IOException(s"$Message: $operation of ${path.getName}")
  }

  private def comes(operation: String, path: Path): Boolean = synchronized {
    armed.exists { step =>
      if (step.matches(operation, path)) seen += 1
      step.matches(operation, path) && seen == step.nth || forGood && seen >= step.nth
    }
  }
}

/**
 * The local file system under the scheme `faulty`, but for [[Faults]]. As in an object store, a file that replaces another
 * appears when its stream is closed; `answer` is the step after that.
 */
final class FaultyFileSystem extends FilterFileSystem(new FaultyFileSystem.Local) {

  override def create(
      path: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable): FSDataOutputStream = {
    Faults.pass("create", path)
    def file() = fs.create(path, permission, overwrite, bufferSize, replication, blockSize, progress)
    new FSDataOutputStream(if (overwrite) new AtClose(path, () => file()) else new Steps(path, file()), null)
  }

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    Faults.pass("open", path)
    super.open(path, bufferSize)
  }

  override def mkdirs(path: Path): Boolean = {
    Faults.pass("mkdirs", path)
    super.mkdirs(path)
  }

  override def mkdirs(path: Path, permission: FsPermission): Boolean = {
    Faults.pass("mkdirs", path)
    super.mkdirs(path, permission)
  }

  override def rename(from: Path, to: Path): Boolean = {
    Faults.pass("rename", from)
    super.rename(from, to)
  }

  override def delete(path: Path, recursive: Boolean): Boolean = {
    Faults.pass("delete", path)
    super.delete(path, recursive)
  }

  override def listStatus(path: Path): Array[FileStatus] = {
    Faults.pass("list", path)
    super.listStatus(path)
  }

  override def getFileStatus(path: Path): FileStatus = {
    Faults.pass("status", path)
    super.getFileStatus(path)
  }
}

object FaultyFileSystem {

  private final class Local extends RawLocalFileSystem {
    override def getUri: URI       = URI.create("faulty:///")
    override def getScheme: String = "faulty"
  }
}

private class Steps(path: Path, out: OutputStream) extends OutputStream {

  override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
    Faults.pass("write", path)
    out.write(bytes, offset, length)
  }

  override def close(): Unit =
    try Faults.pass("close", path)
    finally out.close()
}

private final class AtClose(path: Path, file: () => OutputStream) extends OutputStream {
  private val bytes = new ByteArrayOutputStream

  override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)

  override def write(more: Array[Byte], offset: Int, length: Int): Unit = {
    Faults.pass("write", path)
    bytes.write(more, offset, length)
  }

  override def close(): Unit = {
    Faults.pass("close", path)
    val out = file()
    try bytes.writeTo(out)
    finally out.close()
    Faults.pass("answer", path)
  }
}

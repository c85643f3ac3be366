package io.github.semyonsinchenko.safetensors

import java.io.InterruptedIOException
import java.net.URI
import java.util.concurrent.CompletableFuture

import org.apache.hadoop.fs._
import org.apache.hadoop.fs.impl.OpenFileParameters

/** The local file system under the scheme `stuck`. A read behind the first 10 MB waits until its thread is interrupted. */
final class StuckFileSystem extends FilterFileSystem(new StuckFileSystem.Local) {

  override def open(path: Path, bufferSize: Int): FSDataInputStream =
    new FSDataInputStream(new StuckStream(super.open(path, bufferSize)))

  override def openFile(path: Path): FutureDataInputStreamBuilder =
    FileSystem.createDataInputStreamBuilder(this, path)

  override protected def openFileWithOptions(
      path: Path,
      parameters: OpenFileParameters): CompletableFuture[FSDataInputStream] =
    CompletableFuture.completedFuture(open(path, parameters.getBufferSize))
}

object StuckFileSystem {
  val setting: (String, String) = "fs.stuck.impl" -> classOf[StuckFileSystem].getName

  @volatile private[safetensors] var isStuck = false

  /** The thread that closed a stream last. */
  @volatile private[safetensors] var closer: Option[String] = None

  private[safetensors] def get(): Nothing =
    try {
      isStuck = true
      Thread.sleep(Long.MaxValue)
      throw new IllegalStateException("not interrupted")
    } catch { case _: InterruptedException => throw new InterruptedIOException }
    finally isStuck = false

  private final class Local extends RawLocalFileSystem {
    override def getUri: URI       = URI.create("stuck:///")
    override def getScheme: String = "stuck"
  }
}

private final class StuckStream(in: FSDataInputStream) extends FSInputStream {

  override def readFully(position: Long, buffer: Array[Byte], offset: Int, length: Int): Unit =
    if (position + length > (10 << 20)) StuckFileSystem.get()
    else in.readFully(position, buffer, offset, length)

  override def read(): Int                              = in.read()
  override def seek(position: Long): Unit               = in.seek(position)
  override def getPos: Long                             = in.getPos
  override def seekToNewSource(position: Long): Boolean = in.seekToNewSource(position)

  override def close(): Unit = {
    StuckFileSystem.closer = Some(Thread.currentThread.getName)
    in.close()
  }
}

package io.github.semyonsinchenko.safetensors

import java.net.URI
import java.nio.ByteBuffer
import java.util
import java.util.concurrent.CompletableFuture
import java.util.function.IntFunction

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs._
import org.apache.hadoop.fs.impl.OpenFileParameters

/**
 * What was asked of one path.
 *
 * @param opens    how often it was opened
 * @param ranges   the parts that were read, as (position, count), in the order of the requests; of a vectored read, each range
 * @param lookUps  how often its status was asked for
 * @param listings how often it was listed
 */
final case class Requests(
    opens: Int = 0,
    ranges: Vector[(Long, Int)] = Vector.empty,
    lookUps: Int = 0,
    listings: Int = 0) {

  def bytes: Long = ranges.map(_._2.toLong).sum
}

object Requests {
  private val seen = mutable.Map.empty[String, Requests]

  /** What `body` asked of every [[CountingFileSystem]] of this JVM, by the path's last name. One test at a time. */
  def during[A](body: => A): (A, Map[String, Requests]) = {
    synchronized(seen.clear())
    val result = body
    (result, synchronized(seen.toMap))
  }

  /** What was asked of a path so far. */
  def so(name: String): Requests = synchronized(seen.getOrElse(name, Requests()))

  private[safetensors] def add(path: Path)(change: Requests => Requests): Unit = synchronized {
    seen(path.getName) = change(seen.getOrElse(path.getName, Requests()))
  }
}

/** The local file system under the scheme `counted`, which counts [[Requests]]. It is reached by streams, as any that is far. */
final class CountingFileSystem extends FilterFileSystem(new CountingFileSystem.Local) {

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    Requests.add(path)(so => so.copy(opens = so.opens + 1))
    new FSDataInputStream(new CountedStream(path, super.open(path, bufferSize)))
  }

  // The wrapped file system's would open by itself.
  override def openFile(path: Path): FutureDataInputStreamBuilder =
    FileSystem.createDataInputStreamBuilder(this, path)

  override protected def openFileWithOptions(
      path: Path,
      parameters: OpenFileParameters): CompletableFuture[FSDataInputStream] =
    CompletableFuture.completedFuture(open(path, parameters.getBufferSize))

  override def getFileStatus(path: Path): FileStatus = {
    Requests.add(path)(so => so.copy(lookUps = so.lookUps + 1))
    super.getFileStatus(path)
  }

  override def listStatus(path: Path): Array[FileStatus] = {
    Requests.add(path)(so => so.copy(listings = so.listings + 1))
    super.listStatus(path)
  }
}

object CountingFileSystem {

  /** To be set where Spark or Hadoop is to know the scheme. */
  val setting: (String, String) = "fs.counted.impl" -> classOf[CountingFileSystem].getName

  private final class Local extends RawLocalFileSystem {
    override def getUri: URI       = URI.create("counted:///")
    override def getScheme: String = "counted"
  }
}

private final class CountedStream(path: Path, in: FSDataInputStream) extends FSInputStream {

  private def count(position: Long, bytes: Int): Unit =
    Requests.add(path)(so => so.copy(ranges = so.ranges :+ (position -> bytes)))

  override def read(position: Long, buffer: Array[Byte], offset: Int, length: Int): Int = {
    count(position, length)
    in.read(position, buffer, offset, length)
  }

  override def readFully(position: Long, buffer: Array[Byte], offset: Int, length: Int): Unit = {
    count(position, length)
    in.readFully(position, buffer, offset, length)
  }

  override def readVectored(ranges: util.List[_ <: FileRange], allocate: IntFunction[ByteBuffer]): Unit = {
    ranges.asScala.foreach(range => count(range.getOffset, range.getLength))
    in.readVectored(ranges, allocate)
  }

  override def read(): Int = {
    count(in.getPos, 1)
    in.read()
  }

  override def read(buffer: Array[Byte], offset: Int, length: Int): Int = {
    count(in.getPos, length)
    in.read(buffer, offset, length)
  }

  override def seek(position: Long): Unit               = in.seek(position)
  override def getPos: Long                             = in.getPos
  override def seekToNewSource(position: Long): Boolean = in.seekToNewSource(position)
  override def close(): Unit                            = in.close()
}

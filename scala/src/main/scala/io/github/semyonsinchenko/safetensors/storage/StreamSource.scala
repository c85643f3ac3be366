package io.github.semyonsinchenko.safetensors.storage

import java.io.IOException
import java.nio.ByteBuffer

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileRange, FSDataInputStream}
import org.apache.hadoop.util.functional.FutureIO

import io.github.semyonsinchenko.safetensors.format.{ByteCopy, ByteRange, Header}

/**
 * A file on any Hadoop file system, read by position. Only the requested ranges are fetched, and adjacent ranges with
 * one request.
 */
private[safetensors] final class StreamSource(in: FSDataInputStream, val file: PlannedFile)
    extends OpenedFile {
  import StreamSource._

  override def batchBytes: Int = BatchBytes

  // The first request fetches the header and also the tensors of a small file.
  private var head = Array.emptyByteArray

  override def read(position: Long, target: Array[Byte], offset: Int, count: Int): Unit = {
    checkBounds(position, count)
    if (position + count <= head.length) System.arraycopy(head, position.toInt, target, offset, count)
    else if (count > 0) {
      file.reading(in.readFully(position, target, offset, count))
      if (position == 0 && count <= Header.FirstRead)
        head = java.util.Arrays.copyOfRange(target, offset, offset + count)
    }
  }

  /** Uses at most [[WaveBytes]] of memory. */
  override def readAll(copies: IndexedSeq[ByteCopy]): Unit = {
    copies.foreach(copy => checkBounds(copy.position, copy.count))
    val (here, away) = copies.partition(isHere)
    here.foreach(readOne)
    ByteRuns.waves(ByteRuns.of(away.map(copy => ByteRange(copy.position, copy.count)), RunBytes),
      WaveBytes).foreach {
      case Vector(run) if run.members.size == 1 => readOne(away(run.members.head))
      case wave =>
        for ((run, got) <- wave.zip(fetch(wave)); member <- run.members) handOut(got, run, away(member))
    }
  }

  private def isHere(copy: ByteCopy) =
    copy.count == 0 || copy.position + copy.count <= head.length

  private def readOne(copy: ByteCopy): Unit =
    read(copy.position, copy.target, copy.offset, copy.count)

  private def handOut(got: Array[Byte], run: ByteRun, copy: ByteCopy): Unit =
    System.arraycopy(got, (copy.position - run.position).toInt, copy.target, copy.offset,
      copy.count)

  private def fetch(wave: Vector[ByteRun]): Vector[Array[Byte]] = wave match {
    // A vectored read has no benefit for a single range, and does not resume after a broken connection.
    case Vector(run) => Vector(bytes(run.position, run.count))
    case runs =>
      val requests = runs.map(run => FileRange.createFileRange(run.position, run.count))
      file.reading {
        in.readVectored(requests.asJava, (count: Int) => ByteBuffer.allocate(count))
      }
      runs.zip(requests).map { case (run, request) =>
        try arrayOf(FutureIO.awaitFuture(request.getData), run.count)
        catch { case _: IOException => bytes(run.position, run.count) }
      }
  }

  override def close(): Unit = in.close()
}

private object StreamSource {

  // With S3's 100 MB/s and about 20 ms to the first byte, the wait is a fifth of the time. Larger batches would gain
  // little and use more memory in every task.
  private val BatchBytes = 8 << 20

  // Includes the last row of a batch, which may exceed the batch size.
  private val RunBytes = 2 * BatchBytes

  private val WaveBytes = 2L * RunBytes

  /** The array of the buffer if it has exactly these bytes. File systems may return a slice of a larger array. */
  private def arrayOf(buffer: ByteBuffer, count: Int): Array[Byte] =
    if (buffer.hasArray && buffer.array.length == count) buffer.array
    else {
      val bytes = new Array[Byte](count)
      buffer.get(bytes)
      bytes
    }
}

package io.github.semyonsinchenko.safetensors.fuzz

import java.io.{BufferedReader, File, InputStreamReader, PrintStream}
import java.lang.management.ManagementFactory
import java.math.BigInteger
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.util.Using

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration

import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format._
import io.github.semyonsinchenko.safetensors.storage.Sources

/**
 * The reader's side of the fuzz in `tests/pyspark_interop/fuzz.py`: takes a path in each line, as JSON, and answers what the
 * reader makes of the file with a line as `judge.py` does. Of an accepted file it tells besides if it `repeats_names`. What
 * must never be is `{"fault": what}`.
 */
object FuzzReader {

  // Buffers and errors, and what becomes of the header's bytes: garbage mostly.
  private val AllocatedAlways  = 256L * 1024
  private val AllocatedPerByte = 64L

  private val threads = ManagementFactory.getThreadMXBean.asInstanceOf[com.sun.management.ThreadMXBean]
  private val json    = new ObjectMapper
  private val conf    = new Configuration

  def main(arguments: Array[String]): Unit = {
    val paths   = new BufferedReader(new InputStreamReader(System.in, UTF_8))
    val answers = new PrintStream(System.out, false, UTF_8)
    Iterator.continually(paths.readLine()).takeWhile(_ != null).foreach { line =>
      answers.println(json.writeValueAsString(answer(new File(json.readValue(line, classOf[String])))))
      answers.flush()
    }
  }

  private def answer(file: File): ObjectNode =
    try {
      val inMemory = read(new Watched(file.getPath, Files.readAllBytes(file.toPath)))
      val opened   = Using.resource(Sources.open(DataFile.at(file.getPath, file.length), conf))(read)
      if (inMemory == opened) inMemory else throw new AssertionError(s"the opened file is read as $opened")
    } catch {
      case unexpected: Throwable =>
        val frames = unexpected.getStackTrace.take(20).mkString("\n  at ", "\n  at ", "")
        json.createObjectNode().put("fault", s"$unexpected$frames")
    }

  private def read(source: ByteSource): ObjectNode = {
    val answer = json.createObjectNode()
    val before = threads.getCurrentThreadAllocatedBytes
    try {
      val header = Header.read(source)
      checkAllocated(source, before)
      val metadata = answer.put("repeats_names", repeatsNames(source)).putObject("metadata")
      header.metadata.foreach { case (key, value) => metadata.put(key, value) }
      val tensors = answer.putObject("tensors")
      header.tensors.foreach(tensor => tensors.set[ObjectNode](tensor.name, entry(source, header, tensor)))
      answer
    } catch {
      case refused: InvalidFileException =>
        checkAllocated(source, before)
        if (!refused.getMessage.startsWith(source.name)) throw new AssertionError(refused.getMessage)
        answer.put("refused", refused.refusal.toString).put("message", refused.detail)
    }
  }

  private def checkAllocated(source: ByteSource, before: Long): Unit = {
    val allocated = threads.getCurrentThreadAllocatedBytes - before
    if (allocated > AllocatedAlways + AllocatedPerByte * source.length)
      throw new AssertionError(s"$allocated bytes are allocated for a file of ${source.length}")
  }

  private def repeatsNames(source: ByteSource): Boolean =
    try {
      Header.read(source, RepeatedNames.Refused)
      false
    } catch {
      case refused: InvalidFileException if refused.refusal == Refusal.RepeatedName => true
    }

  private def entry(source: ByteSource, header: Header, tensor: TensorInfo): ObjectNode = {
    val entry = json.createObjectNode().put("dtype", tensor.dtype.name)
    val shape = entry.putArray("shape")
    tensor.shape.foreach(dim => shape.add(new BigInteger(java.lang.Long.toUnsignedString(dim))))
    entry.put("data", source.bytes(header.dataStart + tensor.begin, Math.toIntExact(tensor.size)))
  }

  /** A file in memory, which may be asked only for bytes that it has. */
  private final class Watched(val name: String, content: Array[Byte]) extends ByteSource {

    override def length: Long = content.length.toLong

    override def read(position: Long, target: Array[Byte], offset: Int, count: Int): Unit = {
      if (position < 0 || count < 0 || position + count > length)
        throw new AssertionError(s"$count bytes from $position on are asked of a file of $length")
      System.arraycopy(content, position.toInt, target, offset, count)
    }

    override def close(): Unit = ()
  }
}

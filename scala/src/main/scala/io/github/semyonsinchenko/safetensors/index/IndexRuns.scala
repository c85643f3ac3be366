package io.github.semyonsinchenko.safetensors.index

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.collection.mutable
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.format.{TensorInfo, Utf8Order}
import io.github.semyonsinchenko.safetensors.storage.StorageException

/**
 * Writes the index entries of a task's shards as sorted runs, one file per shard, to a directory of the job. The driver
 * merges them as streams, so no process holds all keys.
 */
private[safetensors] final class IndexRuns(directory: Path, conf: Configuration) {
  private val written = mutable.ArrayBuffer.empty[String]

  def files: Seq[String] = written.toSeq

  /** Adds the tensors of a shard whose byte buffer starts at `dataStart`. */
  def add(shard: String, tensors: Seq[TensorInfo], dataStart: Long): Unit = {
    val sorted = tensors.sortBy(_.name)(Utf8Order)
    val entries = sorted.iterator.map(tensor =>
      IndexEntry(tensor.name, shard, tensor.shape.map(_.toInt), tensor.dtype.name, dataStart + tensor.begin,
        dataStart + tensor.end))
    written += IndexRuns.write(directory, entries, conf)
  }
}

private[safetensors] object IndexRuns {

  /** Writes sorted entries to a new run and returns its name. */
  def write(directory: Path, entries: Iterator[IndexEntry], conf: Configuration): String = {
    val name = s"${UUID.randomUUID()}.run"
    val path = new Path(directory, name)
    StorageException.locating(path) {
      val file = path.getFileSystem(conf).create(path, false)
      Using.resource(new DataOutputStream(new BufferedOutputStream(file, 1 << 16))) { out =>
        var last: IndexEntry = null
        entries.foreach { entry =>
          out.writeBoolean(true)
          writeEntry(entry, last, out)
          last = entry
        }
        out.writeBoolean(false)
      }
    }
    name
  }

  // Most entries differ from the previous one only in key and offsets. Equal fields are written once.
  private def writeEntry(entry: IndexEntry, last: IndexEntry, out: DataOutputStream): Unit = {
    writeText(entry.key, out)
    val alike =
      last != null && entry.file == last.file && entry.dtype == last.dtype && entry.shape == last.shape
    out.writeBoolean(alike)
    if (!alike) {
      writeText(entry.file, out)
      out.writeInt(entry.shape.size)
      entry.shape.foreach(out.writeInt)
      writeText(entry.dtype, out)
    }
    out.writeLong(entry.start)
    out.writeLong(entry.end)
  }

  // `writeUTF` is limited to 64 KB.
  private def writeText(text: String, out: DataOutputStream): Unit = {
    val bytes = text.getBytes(UTF_8)
    out.writeInt(bytes.length)
    out.write(bytes)
  }

  def read(directory: Path, name: String, conf: Configuration): CloseableEntries = {
    val path = new Path(directory, name)
    val in   = new DataInputStream(new BufferedInputStream(path.getFileSystem(conf).open(path), 1 << 16))
    var last: IndexEntry = null
    val entries = Iterator.continually(in.readBoolean()).takeWhile(identity).map { _ =>
      last = readEntry(last, in)
      last
    }
    new CloseableEntries(entries, () => in.close())
  }

  private def readEntry(last: IndexEntry, in: DataInputStream): IndexEntry = {
    val key = readText(in)
    if (in.readBoolean()) last.copy(key = key, start = in.readLong(), end = in.readLong())
    else {
      val (file, shape, dtype) = (readText(in), Vector.fill(in.readInt())(in.readInt()), readText(in))
      IndexEntry(key, file, shape, dtype, in.readLong(), in.readLong())
    }
  }

  private def readText(in: DataInputStream): String = {
    val bytes = new Array[Byte](in.readInt())
    in.readFully(bytes)
    new String(bytes, UTF_8)
  }
}

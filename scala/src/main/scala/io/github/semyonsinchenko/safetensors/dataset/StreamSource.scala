package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.fs.FSDataInputStream

import io.github.semyonsinchenko.safetensors.format.ByteSource

/** A file of any Hadoop file system, read by position: only the ranges that are asked for are fetched. */
private[dataset] final class StreamSource(in: FSDataInputStream, val name: String, val length: Long)
    extends ByteSource {

  override def read(position: Long, target: Array[Byte], offset: Int, count: Int): Unit =
    in.readFully(position, target, offset, count)

  override def close(): Unit = in.close()
}

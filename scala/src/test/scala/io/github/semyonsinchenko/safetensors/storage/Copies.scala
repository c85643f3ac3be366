package io.github.semyonsinchenko.safetensors.storage

import io.github.semyonsinchenko.safetensors.format.{ByteCopy, ByteRange, ByteSource}

/** Ranges of a file that are read together. */
object Copies {

  /** The bytes of each range; what lies around them in the arrays that they are copied to stays as it was. */
  def of(source: ByteSource, ranges: IndexedSeq[ByteRange]): IndexedSeq[Array[Byte]] = {
    val copies = ranges.map(range =>
      ByteCopy(range.position, range.count, Array.fill[Byte](range.count.max(0) + 3)(-1), 2))
    source.readAll(copies)
    copies.map { copy =>
      assert(copy.target.take(2).forall(_ == -1) && copy.target.last == -1)
      copy.target.slice(2, 2 + copy.count)
    }
  }
}

package io.github.semyonsinchenko.safetensors.storage

import io.github.semyonsinchenko.safetensors.format.ByteRange

/**
 * Ranges that one request fetches.
 *
 * @param members which of the ranges asked for lie in it, by their place in the question
 */
private[safetensors] final case class ByteRun(position: Long, count: Int, members: Vector[Int]) {
  def end: Long = position + count
}

/** How ranges become requests. */
private[safetensors] object ByteRuns {

  // 64 KiB that nobody wants come within a millisecond; another request takes ten of them.
  val MaxGap = 64 << 10

  /**
   * Runs in the order of the file. Ranges that lie next to each other, or nearly, share a run as long as it has no more than
   * `maxBytes`. A range without bytes is in none.
   */
  def of(ranges: IndexedSeq[ByteRange], maxBytes: Int): Vector[ByteRun] = {
    val inOrder = ranges.indices.filter(ranges(_).count > 0).sortBy(ranges(_).position)
    inOrder.foldLeft(Vector.empty[ByteRun]) { (runs, index) =>
      val range = ranges(index)
      runs.lastOption.flatMap(joined(_, range, index, maxBytes)) match {
        case Some(run) => runs.init :+ run
        case None      => runs :+ ByteRun(range.position, range.count, Vector(index))
      }
    }
  }

  private def joined(run: ByteRun, range: ByteRange, index: Int, maxBytes: Int): Option[ByteRun] = {
    val count = math.max(run.end, range.position + range.count) - run.position
    Option.when(range.position - run.end <= MaxGap && count <= maxBytes)(
      ByteRun(run.position, count.toInt, run.members :+ index))
  }

  /**
   * Runs to be under way at the same time: together no more than `maxBytes`, if there are two, and none that overlap, which
   * Hadoop refuses.
   */
  def waves(runs: Vector[ByteRun], maxBytes: Long): Vector[Vector[ByteRun]] = {
    val waves = Vector.newBuilder[Vector[ByteRun]]
    var wave  = Vector.empty[ByteRun]
    var bytes = 0L
    runs.foreach { run =>
      if (wave.nonEmpty && (run.position < wave.last.end || bytes + run.count > maxBytes)) {
        waves += wave
        wave = Vector.empty
        bytes = 0
      }
      wave :+= run
      bytes += run.count
    }
    if (wave.nonEmpty) waves += wave
    waves.result()
  }
}

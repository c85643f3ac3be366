package io.github.semyonsinchenko.safetensors.storage

import io.github.semyonsinchenko.safetensors.format.ByteRange

/**
 * A range of the file that one request fetches.
 *
 * @param members the indices of the requested ranges that it contains
 */
private[safetensors] final case class ByteRun(position: Long, count: Int, members: Vector[Int]) {
  def end: Long = position + count
}

/** Combines ranges into requests. */
private[safetensors] object ByteRuns {

  // Fetching 64 KiB more takes less than a millisecond. Another request takes about ten milliseconds.
  val MaxGap = 64 << 10

  /**
   * Runs in file order. Ranges at most [[MaxGap]] bytes apart share a run of at most `maxBytes`. Empty ranges are
   * skipped.
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
   * Groups of runs to fetch concurrently. A group has at most `maxBytes` or a single run. Runs of a group do not
   * overlap, because Hadoop rejects overlaps.
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

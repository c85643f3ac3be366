package io.github.semyonsinchenko.safetensors.index

import scala.annotation.tailrec

/**
 * Which parts of an index a commit keeps, and which it merges with the entries that it adds. A part that stays has several
 * times as many entries as all that follow it. So there are few parts, and each entry is rewritten few times.
 */
private[safetensors] object IndexTiers {

  private val Ratio = 4

  // Rewritten in about the time that it takes to open a file.
  private val SmallPart = 1L << 14

  /**
   * The number of parts, from the first on, that stay as they are.
   *
   * @param parts the number of entries of each
   * @param added the number of entries that the commit adds
   */
  def kept(parts: Seq[Long], added: Long): Int = {
    @tailrec def keep(count: Int, merged: Long): Int =
      if (count > 0 && (parts(count - 1) < SmallPart || parts(count - 1) < Ratio * merged))
        keep(count - 1, merged + parts(count - 1))
      else count
    keep(parts.size, added)
  }
}

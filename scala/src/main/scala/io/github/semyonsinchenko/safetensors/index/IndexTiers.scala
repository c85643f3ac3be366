package io.github.semyonsinchenko.safetensors.index

import scala.annotation.tailrec

/**
 * Decides which parts of an index a commit keeps, and which it merges with its new entries. A part is kept if it has
 * several times as many entries as all parts after it. So there are few parts, and each entry is rewritten few times.
 */
private[safetensors] object IndexTiers {

  private val Ratio = 4

  // Rewriting this many entries takes about as long as opening a file.
  private val SmallPart = 1L << 14

  /**
   * The number of leading parts to keep.
   *
   * @param parts the number of entries of each part
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

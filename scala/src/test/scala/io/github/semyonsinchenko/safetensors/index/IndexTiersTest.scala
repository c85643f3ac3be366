package io.github.semyonsinchenko.safetensors.index

import org.scalatest.funsuite.AnyFunSuite

class IndexTiersTest extends AnyFunSuite {

  /** The sizes of the parts, and how many entries were written in all, after appends of these sizes. */
  private def after(appends: Seq[Long]): (Seq[Long], Long) =
    appends.foldLeft((Seq.empty[Long], 0L)) { case ((parts, written), added) =>
      val (stay, merged) = parts.splitAt(IndexTiers.kept(parts, added))
      (stay :+ merged.sum + added, written + merged.sum + added)
    }

  test("a small index stays one part") {
    assert(after(Seq.fill(100)(100L))._1 == Seq(10000))
  }

  test("a part that is much larger than what follows stays as it is") {
    assert(after(Seq(1000000, 1))._1 == Seq(1000000, 1))
    assert(after(Seq(1000000, 100000, 1))._1 == Seq(1000000, 100000, 1))
    assert(after(Seq(1000000, 100000, 40000))._1 == Seq(1000000, 140000))
    assert(after(Seq(1000000, 300000))._1 == Seq(1300000))
  }

  for (added <- Seq(1L, 1000L, 100000L))
    test(s"many appends of $added entries leave few parts, and rewrite each entry few times") {
      val (parts, written) = after(10000000L +: Seq.fill(2000)(added))
      assert(parts.size <= 6)
      // An append of few entries rewrites the last part, which is small.
      assert(written < 10000000L + 2000 * added * 40 + 2000 * (1L << 15))
    }
}

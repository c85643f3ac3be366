package io.github.semyonsinchenko.safetensors.index

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir

class IndexMergeTest extends AnyFunSuite {
  private val conf = new Configuration

  private def entry(key: String, file: String = "f"): IndexEntry =
    IndexEntry(key, file, Seq(2, 3), "F32", 8, 32)

  private def merged(runs: Seq[Seq[IndexEntry]]): Seq[IndexEntry] = TempDir { directory =>
    val path    = new Path(directory.toUri)
    val files   = runs.map(run => IndexRuns.write(path, run.iterator, conf))
    val entries = new IndexMerge(path, conf).entries(files)
    try entries.toVector
    finally entries.close()
  }

  test("runs come out as one, by UTF-8 bytes, in more rounds than one if there are many") {
    val keys = (0 until 1000).map(i => f"key$i%04d") ++ Seq("\uffff", "😀")
    val runs = keys.indices.groupBy(_ % 300).values.map(_.sorted.map(i => entry(keys(i)))).toSeq
    assert(runs.size == 300)
    assert(merged(runs).map(_.key) == keys)
  }

  test("equal keys come by shard, and an entry comes out as it went in, however long its key") {
    val long = entry("k" * 100000)
    assert(merged(Seq(Seq(entry("a", "2")), Seq(entry("a", "1"), long), Nil)) == Seq(entry("a", "1"),
      entry("a", "2"), long))
  }

  test("a key that comes twice is an error that names both shards") {
    val error = intercept[DuplicateKeyException](IndexMerge.unique(Iterator(entry("a"), entry("b", "1"),
      entry("b", "2"))).toSeq)
    assert(error.getMessage.startsWith("The key `b` is in two shards, 1 and 2,"))
  }

  test("an index is read as it was written, with the commit that it belongs to") {
    TempDir { directory =>
      val path = new Path(directory.toUri)
      val entries = (0 until 5000).map(i =>
        IndexEntry(f"key$i%05d", s"f$i", Seq.fill(i % 3)(i), "BF16", i.toLong, i + 1L << 33))
      val part = IndexPart.only("7f4")
      TensorIndex.write(new Path(path, part.file), "7f4", entries.iterator, 0, conf)
      assert(TensorIndex.find(path, part, Keys.all, conf)(_.toVector).contains(entries))
      for (other <- Seq(IndexPart.only("8f4"), IndexPart("absent", "7f4")))
        assert(TensorIndex.find(path, other, Keys.all, conf)(_.toVector).isEmpty)
    }
  }

  test("a key that another part has is an error that names both shards") {
    TempDir { directory =>
      val path = new Path(directory.toUri)
      val part = IndexPart.only("7f4")
      TensorIndex.write(new Path(path, part.file), "7f4", Iterator("b", "k", "z").map(entry(_, "1")), 0, conf)
      val older = TensorIndex.open(path, part, conf).get
      try {
        val absent = (0 until 25000).map(i => entry(f"k$i%05d", "2"))
        assert(IndexMerge.absentFrom(Seq(older))(absent.iterator).toVector == absent)
        val error = intercept[DuplicateKeyException](
          IndexMerge.absentFrom(Seq(older))((absent :+ entry("z", "2")).iterator).size)
        assert(error.getMessage.startsWith("The key `z` is in two shards, 1 and 2,"))
      } finally older.close()
    }
  }
}

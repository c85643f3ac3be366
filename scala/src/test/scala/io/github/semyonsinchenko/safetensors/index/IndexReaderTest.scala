package io.github.semyonsinchenko.safetensors.index

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir

class IndexReaderTest extends AnyFunSuite {
  private val conf = new Configuration

  // Several row groups of several pages each, shapes of several ranks, and many entries of equal keys.
  private val entries = (0 until 20000).map(i =>
    IndexEntry(f"key${i / 3}%05d", s"f${i % 7}", Seq.fill(i % 3)(i), Seq("BF16", "F32")(i % 2), i.toLong,
      i + 1L))

  private def found(keys: Keys): Seq[IndexEntry] = TempDir { directory =>
    val path = new Path(directory.toString, IndexPart.OnlyFile)
    TensorIndex.write(path, "7f4", entries.iterator, 100000, conf)
    val index = new IndexReader(path, conf)
    try index.entries(keys).toVector
    finally index.close()
  }

  private def names(numbers: Int*): Iterator[UTF8String] =
    numbers.iterator.map(number => UTF8String.fromString(f"key$number%05d"))

  private def key(number: Int): UTF8String = names(number).next()

  private def entriesOf(numbers: Int => Boolean): Seq[IndexEntry] =
    entries.filter(entry => numbers(entry.key.drop(3).toInt))

  test("all entries come as they were written") {
    assert(found(Keys.all) == entries)
  }

  test("entries of keys far apart, side by side, and not there") {
    val some = Set(0, 1, 2, 83, 84, 500, 3333, 6665, 6666)
    assert(found(Keys.of(names((some ++ Set(7000, 99999)).toSeq: _*))) == entriesOf(some))
    assert(found(Keys.of(Iterator.empty)) == Nil)
  }

  test("entries of a range of keys") {
    assert(found(Keys.from(key(80)).intersect(Keys.before(key(90)))) == entriesOf(80 until 90 contains _))
    assert(found(Keys.startingWith(UTF8String.fromString("key061"))) == entriesOf(6100 until 6200 contains _))
    assert(found(Keys.after(key(6600))) == entriesOf(_ > 6600))
  }
}

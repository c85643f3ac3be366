package io.github.semyonsinchenko.safetensors.index

import java.util.Arrays.compareUnsigned

import scala.annotation.tailrec
import scala.collection.mutable

import org.apache.spark.unsafe.types.UTF8String

/**
 * Names of tensors that a query may need, as sorted and disjoint ranges of UTF-8 bytes. Bytes are compared as unsigned,
 * like in the index and in Spark's strings.
 */
final class Keys private (private val ranges: Vector[KeyRange]) {

  def contain(key: Array[Byte]): Boolean = overlap(key, key)

  /** Whether one of the keys may be between these two, inclusive. */
  def overlap(least: Array[Byte], greatest: Array[Byte]): Boolean = {
    val at = firstEndingBehind(least)
    at < ranges.length && compareUnsigned(ranges(at).from, greatest) <= 0
  }

  /** The keys between these two, and possibly others. */
  def between(least: Array[Byte], greatest: Array[Byte]): Keys = {
    val begin = firstEndingBehind(least)
    new Keys(ranges.slice(begin, firstEndingBehind(greatest) + 1))
  }

  def isEmpty: Boolean = ranges.isEmpty

  def union(other: Keys): Keys = Keys.of(ranges ++ other.ranges)

  def intersect(other: Keys): Keys = {
    val common = Vector.newBuilder[KeyRange]
    @tailrec def advance(i: Int, j: Int): Unit =
      if (i < ranges.length && j < other.ranges.length) {
        val (one, two) = (ranges(i), other.ranges(j))
        common ++= one.intersect(two)
        if (one.endsBefore(two)) advance(i + 1, j) else advance(i, j + 1)
      }
    advance(0, 0)
    new Keys(common.result())
  }

  private def firstEndingBehind(key: Array[Byte]): Int = {
    @tailrec def search(low: Int, high: Int): Int =
      if (low == high) low
      else {
        val middle = (low + high) >>> 1
        if (ranges(middle).endsBehind(key)) search(low, middle) else search(middle + 1, high)
      }
    search(0, ranges.length)
  }
}

object Keys {

  val all: Keys = new Keys(Vector(KeyRange(Array.empty, None)))

  def of(names: Iterator[UTF8String]): Keys =
    of(names.map(name => KeyRange(name.getBytes, Some(next(name.getBytes)))).toVector)

  def startingWith(prefix: UTF8String): Keys =
    new Keys(Vector(KeyRange(prefix.getBytes, behind(prefix.getBytes))))

  def from(key: UTF8String): Keys   = new Keys(Vector(KeyRange(key.getBytes, None)))
  def after(key: UTF8String): Keys  = new Keys(Vector(KeyRange(next(key.getBytes), None)))
  def before(key: UTF8String): Keys = new Keys(Vector(KeyRange(Array.empty, Some(key.getBytes))))
  def upTo(key: UTF8String): Keys   = new Keys(Vector(KeyRange(Array.empty, Some(next(key.getBytes)))))

  private def of(ranges: Vector[KeyRange]): Keys = {
    val disjoint = mutable.ArrayBuffer.empty[KeyRange]
    ranges.sorted.foreach { range =>
      if (disjoint.lastOption.exists(_.reaches(range)))
        disjoint(disjoint.length - 1) = disjoint.last.hull(range)
      else disjoint += range
    }
    new Keys(disjoint.toVector)
  }

  /** The smallest key after this one. */
  private def next(key: Array[Byte]): Array[Byte] = java.util.Arrays.copyOf(key, key.length + 1)

  /** The smallest key after all keys with the prefix. None if there is no such key. */
  private def behind(prefix: Array[Byte]): Option[Array[Byte]] = {
    val end = prefix.reverseIterator.dropWhile(_ == -1).toArray.reverse
    Option.when(end.nonEmpty) {
      end(end.length - 1) = (end.last + 1).toByte
      end
    }
  }
}

/** The keys from `from`, inclusive, to `until`, exclusive. Unbounded if there is no `until`. */
private final case class KeyRange(from: Array[Byte], until: Option[Array[Byte]]) {

  def endsBehind(key: Array[Byte]): Boolean = until.forall(compareUnsigned(_, key) > 0)

  def endsBefore(other: KeyRange): Boolean = until.exists(other.endsBehind)

  /** Whether there is no gap before `later`, which must not start earlier. */
  def reaches(later: KeyRange): Boolean = until.forall(compareUnsigned(_, later.from) >= 0)

  def hull(later: KeyRange): KeyRange = if (endsBefore(later)) KeyRange(from, later.until) else this

  def intersect(other: KeyRange): Option[KeyRange] = {
    val begin = if (compareUnsigned(from, other.from) < 0) other.from else from
    val end   = if (endsBefore(other)) until else other.until
    Option.when(end.forall(compareUnsigned(_, begin) > 0))(KeyRange(begin, end))
  }
}

private object KeyRange {
  implicit val order: Ordering[KeyRange] = (a, b) => compareUnsigned(a.from, b.from)
}

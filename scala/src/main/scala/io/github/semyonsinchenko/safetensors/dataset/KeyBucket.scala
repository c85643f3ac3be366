package io.github.semyonsinchenko.safetensors.dataset

/**
 * The key bucket of a shard.
 *
 * @param buckets the number of buckets
 * @param bucket  the bucket of this shard, starting at 0
 * @param keys    the smallest and the largest key of the shard, ordered by UTF-8 bytes. None if they are long.
 */
final case class KeyBucket(buckets: Int, bucket: Int, keys: Option[(String, String)])

object KeyBucket {

  /** As in Spark's own tables. */
  val MaxBuckets = 100000

  // The manifest has two keys of each shard.
  private val MaxKeyChars = 1000

  def of(buckets: Int, bucket: Int, first: String, last: String): KeyBucket =
    KeyBucket(buckets, bucket,
      Some((first, last)).filter(_ => math.max(first.length, last.length) <= MaxKeyChars))

  /** The number of buckets of these shards. None if there are no shards, or if they do not all have the same number. */
  def countOf(shards: Iterator[Option[KeyBucket]]): Option[Int] =
    shards.nextOption().flatten.map(_.buckets).filter(count => shards.forall(_.exists(_.buckets == count)))
}

package io.github.semyonsinchenko.safetensors.dataset

/**
 * The key bucket of a shard.
 *
 * @param buckets the number of buckets
 * @param bucket  the bucket of this shard, starting at 0
 * @param first   the smallest key of the shard, ordered by UTF-8 bytes
 * @param last    the largest key of the shard
 */
final case class KeyBucket(buckets: Int, bucket: Int, first: String, last: String)

object KeyBucket {

  /** The number of buckets of these shards. None if there are no shards, or if they do not all have the same number. */
  def countOf(shards: Iterator[Option[KeyBucket]]): Option[Int] =
    shards.nextOption().flatten.map(_.buckets).filter(count => shards.forall(_.exists(_.buckets == count)))
}

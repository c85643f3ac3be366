package io.github.semyonsinchenko.safetensors.dataset

/**
 * The bucket of keys that a shard is in.
 *
 * @param buckets how many there are
 * @param bucket  the one of this shard, from 0 on
 * @param first   the least key of the shard, as UTF-8 bytes
 * @param last    the greatest
 */
final case class KeyBucket(buckets: Int, bucket: Int, first: String, last: String)

object KeyBucket {

  /** The number of buckets of these shards; none if there is no shard, or not one number for all of them. */
  def countOf(shards: Iterator[Option[KeyBucket]]): Option[Int] =
    shards.nextOption().flatten.map(_.buckets).filter(count => shards.forall(_.exists(_.buckets == count)))
}

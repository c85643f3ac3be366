package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.dataset.KeyBucket
import io.github.semyonsinchenko.safetensors.format.Utf8Order
import io.github.semyonsinchenko.safetensors.read.rows.FilePart

/**
 * The shards of a bucket of keys, which one task reads.
 *
 * @param parts in the order of their first keys
 */
private[read] final case class BucketPartition(bucket: Int, parts: Seq[FilePart]) {

  /** The bucket, as Spark compares it with those of other tables. */
  def key: InternalRow = InternalRow(bucket)

  /** Whether all its rows are in the order of their keys, which is so in each shard. */
  def isSorted: Boolean = parts.iterator.map(BucketPartition.of).sliding(2).forall {
    case Seq(before, after) => Utf8Order.lteq(before.last, after.first)
    case _                  => true
  }
}

private[read] object BucketPartition {

  /** All parts by their buckets. */
  def all(parts: Seq[FilePart]): Seq[BucketPartition] =
    parts.groupBy(of(_).bucket).toSeq.sortBy(_._1).map { case (bucket, inIt) =>
      BucketPartition(bucket, inIt.sortBy(of(_).first)(Utf8Order))
    }

  /** The bucket of a part of a file that is in one. */
  private def of(part: FilePart): KeyBucket = part.file.shard.flatMap(_.bucket).get
}

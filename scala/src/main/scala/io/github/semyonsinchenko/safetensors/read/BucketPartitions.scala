package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.dataset.KeyBucket
import io.github.semyonsinchenko.safetensors.format.Utf8Order
import io.github.semyonsinchenko.safetensors.read.rows.FilePart

/**
 * The shards of one key bucket. One task reads them.
 *
 * @param parts sorted by first key
 */
private[read] final case class BucketPartition(bucket: Int, parts: Seq[FilePart]) {

  /** The partition key. Spark compares it with the keys of other tables. */
  def key: InternalRow = InternalRow(bucket)

  /** Whether its rows are sorted by key. The rows of each shard are. */
  def isSorted: Boolean = parts.iterator.map(BucketPartition.of(_).keys).sliding(2).forall {
    case Seq(before, after) =>
      before.zip(after).exists { case ((_, last), (first, _)) => Utf8Order.lteq(last, first) }
    case _ => true
  }
}

private[read] object BucketPartition {

  /** Groups the parts by bucket. */
  def all(parts: Seq[FilePart]): Vector[BucketPartition] =
    parts.groupBy(of(_).bucket).toVector.sortBy(_._1).map { case (bucket, inIt) =>
      BucketPartition(bucket, inIt.sortBy(of(_).keys.fold("")(_._1))(Utf8Order))
    }

  /** The bucket of a part. Its file must be in a bucket. */
  private def of(part: FilePart): KeyBucket = part.file.shard.flatMap(_.bucket).get
}

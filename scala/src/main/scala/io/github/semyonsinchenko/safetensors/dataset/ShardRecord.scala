package io.github.semyonsinchenko.safetensors.dataset

/**
 * One shard of a dataset.
 *
 * @param file        its name in the dataset's directory
 * @param samples     rows in it, padding not counted
 * @param bytes       the file's length
 * @param headerBytes where the byte buffer begins
 * @param crc32c      checksum of the whole file
 * @param bucket      the bucket that all its keys are in, if the write put rows in buckets
 */
final case class ShardRecord(
    file: String,
    samples: Long,
    bytes: Long,
    headerBytes: Long,
    crc32c: Int,
    bucket: Option[KeyBucket] = None)

/** A tensor column as it was written; shape is per sample, and absent where rows differ or there were none. */
final case class ColumnRecord(name: String, dtype: Option[String], shape: Option[Seq[Int]])

/**
 * What a manifest says of a shard.
 *
 * @param headerBytes where its byte buffer begins
 * @param samples     rows in it, padding not counted; none where its tensors are rows by themselves
 * @param tensors     how many tensors it has
 * @param columns     its tensors, with the shape of a sample; empty where the tensors are named by keys
 * @param bucket      the bucket that all its keys are in, if the write put rows in buckets
 */
final case class ShardFacts(
    headerBytes: Long,
    samples: Option[Long],
    tensors: Long,
    columns: Seq[ColumnRecord],
    bucket: Option[KeyBucket] = None)

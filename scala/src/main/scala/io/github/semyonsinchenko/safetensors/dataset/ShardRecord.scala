package io.github.semyonsinchenko.safetensors.dataset

/**
 * One shard of a dataset.
 *
 * @param file        file name in the dataset's directory
 * @param samples     number of rows, without padding
 * @param bytes       length of the file
 * @param headerBytes offset of the byte buffer
 * @param crc32c      checksum of the whole file
 * @param bucket      the bucket of all its keys, if the write used buckets
 */
final case class ShardRecord(
    file: String,
    samples: Long,
    bytes: Long,
    headerBytes: Long,
    crc32c: Int,
    bucket: Option[KeyBucket] = None)

/**
 * A written tensor column.
 *
 * @param shape     the shape of a sample, or of a value if the kind has offsets; none if rows differ or there are none
 * @param sparkType the type of the column that was written; none if a version without this field wrote it
 */
final case class ColumnRecord(
    name: String,
    dtype: Option[String],
    shape: Option[Seq[Int]],
    kind: ColumnKind = ColumnKind.Fixed,
    sparkType: Option[String] = None) {

  /** The names of the column's tensors in a shard of a batch dataset. */
  def tensors: Seq[String] = name +: Option.when(kind.hasOffsets)(ColumnKind.offsetsOf(name)).toSeq
}

/**
 * The facts about a shard in a manifest.
 *
 * @param headerBytes offset of the byte buffer
 * @param samples     number of rows, without padding; none if each tensor belongs to one row
 * @param tensors     number of tensors
 * @param columns     its tensors, with the shape of a sample; empty if keys name the tensors
 * @param bucket      the bucket of all its keys, if the write used buckets
 */
final case class ShardFacts(
    headerBytes: Long,
    samples: Option[Long],
    tensors: Long,
    columns: Seq[ColumnRecord],
    bucket: Option[KeyBucket] = None)

package io.github.semyonsinchenko.safetensors.index

import java.util.UUID

/**
 * A file of a dataset's index.
 *
 * @param file     file name in the dataset's directory
 * @param commitId ID of the write that created it. A file with another ID in its footer is not this part.
 */
final case class IndexPart(file: String, commitId: String)

object IndexPart {

  /** The name of an index with only one file, unless a file of an older commit has the name. */
  val OnlyFile = "_tensor_index.parquet"

  private val Name = "_tensor_index(-[0-9a-f-]{36})?\\.parquet".r

  def isName(file: String): Boolean = Name.matches(file)

  /** The only part of a commit's index. */
  def only(commitId: String): IndexPart = IndexPart(OnlyFile, commitId)

  /** The name of the part that a commit creates. */
  def nameOf(commit: UUID): String = s"_tensor_index-$commit.parquet"
}

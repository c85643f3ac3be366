package io.github.semyonsinchenko.safetensors.index

import java.util.UUID

/**
 * A file of a dataset's index.
 *
 * @param file     its name in the dataset's directory
 * @param commitId of the write that made it, which its footer repeats: a file of another commit is not this part
 */
final case class IndexPart(file: String, commitId: String)

object IndexPart {

  /** The name of an index that is one file, where no file of an older commit has it. */
  val OnlyFile = "_tensor_index.parquet"

  private val Name = "_tensor_index(-[0-9a-f-]{36})?\\.parquet".r

  def isName(file: String): Boolean = Name.matches(file)

  /** The part that is the whole index of a commit. */
  def only(commitId: String): IndexPart = IndexPart(OnlyFile, commitId)

  /** The name of a commit's own. */
  def nameOf(commit: UUID): String = s"_tensor_index-$commit.parquet"
}

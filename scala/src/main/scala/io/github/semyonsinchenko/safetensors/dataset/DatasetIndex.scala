package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.format.{Dtype, TensorInfo}
import io.github.semyonsinchenko.safetensors.index.{IndexEntry, Keys, TensorIndex}

/** The look-up in a dataset's `_tensor_index.parquet`. */
private[dataset] final class DatasetIndex(file: FileStatus, manifest: Manifest) extends DirectoryIndex {
  import DatasetIndex._

  // Without names all of the index must be read, which pays for a small one only: tasks read headers side by side.
  override def find(
      keys: Option[Keys],
      accepts: (String, TensorInfo) => Boolean,
      conf: Configuration): Option[Map[String, Located]] =
    if (keys.isEmpty && file.getLen > SmallBytes) None
    else
      TensorIndex.find(file.getPath, manifest.commitId, keys.getOrElse(Keys.all), conf) { entries =>
        val found = entries.map(entry => fileOf(entry) -> tensor(entry)).filter(accepts.tupled)
        val few   = found.take(MaxTensors).toVector
        if (found.hasNext) filesOf(few.iterator.map(_._1) ++ found.map(_._1))
        else Some(few.groupMap(_._1)(_._2).map { case (name, tensors) =>
          name -> Located.At(tensors.sortBy(_.begin))
        })
      }.flatten

  /** The files of these tensors; none where they are too many for the driver to look at. */
  private def filesOf(names: Iterator[String]): Option[Map[String, Located]] = {
    val files = names.take(MaxLookedAt).toSet
    Option.unless(names.hasNext)(files.map(_ -> Located.Somewhere).toMap)
  }

  override def firstFile(conf: Configuration): Option[String] =
    TensorIndex.find(file.getPath, manifest.commitId, Keys.all, conf)(_.nextOption().map(fileOf)).flatten

  private lazy val shards = manifest.shards.iterator.map(shard => shard.file -> shard.bytes).toMap

  private def fileOf(entry: IndexEntry): String = {
    val length =
      shards.getOrElse(entry.file, fault(s"`${entry.key}` is in `${entry.file}`, which is no shard"))
    if (entry.start < 0 || entry.end < entry.start || entry.end > length)
      fault(
        s"`${entry.key}` is at the bytes ${entry.start} to ${entry.end} of ${entry.file}, which has $length")
    entry.file
  }

  private def tensor(entry: IndexEntry): TensorInfo = {
    val dtype =
      Dtype.of(entry.dtype).getOrElse(
        fault(s"`${entry.key}` has the dtype `${entry.dtype}`, which does not exist"))
    val size = entry.end - entry.start
    if (entry.shape.exists(_ < 0) || entry.shape.foldLeft(BigInt(dtype.bits))(_ * _) != BigInt(size) * 8)
      fault(s"`${entry.key}` has $size bytes, which do not fit ${dtype.name} ${entry.shape.mkString("[", ", ", "]")}")
    TensorInfo(entry.key, dtype, entry.shape.map(_.toLong).toVector, entry.start, entry.end)
  }

  private def fault(detail: String) = throw new InvalidRequestException(
    s"${file.getPath} is wrong: tensor $detail. Delete it, and have a write with `generate_index` make it anew.")
}

private object DatasetIndex {

  // What a plan can carry to its tasks, a megabyte or two.
  private val MaxTensors = 10000

  // About a second's worth. Of more, tasks read the headers side by side.
  private val MaxLookedAt = 1000000

  // Some hundred thousand tensors.
  private val SmallBytes = 2L << 20
}

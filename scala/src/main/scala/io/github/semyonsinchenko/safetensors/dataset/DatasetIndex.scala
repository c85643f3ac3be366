package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.common.{InvalidRequestException, Parallel}
import io.github.semyonsinchenko.safetensors.format.{Dtype, TensorInfo}
import io.github.semyonsinchenko.safetensors.index.{IndexEntry, IndexPart, Keys, TensorIndex}

/**
 * Looks up tensors in the index of a dataset.
 *
 * @param bytes the total length of its parts
 */
private[dataset] final class DatasetIndex(directory: Path, manifest: Manifest, bytes: Long)
    extends DirectoryIndex {
  import DatasetIndex._

  private lazy val shards = manifest.shards.iterator.map(shard => shard.file -> shard.bytes).toMap

  // Without keys the whole index must be read. This pays off only for a small index, because tasks read headers in
  // parallel.
  override def find(
      keys: Option[Keys],
      accepts: (String, TensorInfo) => Boolean,
      conf: Configuration): Option[Map[String, Located]] =
    if (keys.isEmpty && bytes > SmallBytes) None
    else inParts(keys.getOrElse(Keys.all), conf) { (part, entries) =>
      val check = checkOf(part)
      found(entries.map(entry => check.file(entry) -> check.tensor(entry)).filter(accepts.tupled))
    }.filter(_.forall(_.isDefined)).map(parts => located(parts.flatten))

  /** None if there are too many tensors for the driver to process. */
  private def found(tensors: Iterator[(String, TensorInfo)]): Option[Found] = {
    val few  = tensors.take(MaxTensors).toVector
    val more = tensors.take(MaxLookedAt).map(_._1).toSet
    Option.unless(tensors.hasNext)(Found(few, more))
  }

  private def located(found: Seq[Found]): Map[String, Located] = {
    val tensors = found.flatMap(_.tensors)
    val more    = found.flatMap(_.more)
    if (more.isEmpty && tensors.size <= MaxTensors) tensors.groupMap(_._1)(_._2).map { case (name, inFile) =>
      name -> Located.At(inFile.sortBy(_.begin).toVector)
    }
    else (tensors.map(_._1) ++ more).map(_ -> Located.Somewhere).toMap
  }

  override def firstFile(conf: Configuration): Option[String] =
    inParts(Keys.all, conf) { (part, entries) =>
      val check = checkOf(part)
      entries.nextOption().map(entry => entry -> check.file(entry))
    }.flatMap(_.flatten.minByOption(_._1)(IndexEntry.order)).map(_._2)

  /** Applies `use` to the entries of these keys in each part. None if a part is missing or from another commit. */
  private def inParts[A](keys: Keys, conf: Configuration)(
      use: (IndexPart, Iterator[IndexEntry]) => A): Option[Seq[A]] = {
    val results = Parallel.map(manifest.indexParts)(part =>
      TensorIndex.find(directory, part, keys, conf)(use(part, _)))
    Option.when(results.forall(_.isDefined))(results.flatten)
  }

  private def checkOf(part: IndexPart) = new EntryCheck(new Path(directory, part.file), shards)
}

/**
 * The result of a look-up in a part of an index.
 *
 * @param more files of further tensors, if there are too many tensors for a plan
 */
private final case class Found(tensors: Vector[(String, TensorInfo)], more: Set[String])

private object DatasetIndex {

  // A plan sends these to its tasks: one or two megabytes.
  private val MaxTensors = 10000

  // Takes the driver about a second. Beyond that, tasks read the headers in parallel.
  private val MaxLookedAt = 1000000

  // A few hundred thousand tensors.
  private val SmallBytes = 2L << 20
}

/**
 * Checks that entries are consistent with the shards of the dataset.
 *
 * @param path   path of the index file
 * @param shards length of each shard
 */
private final class EntryCheck(path: Path, shards: Map[String, Long]) {

  /** @throws InvalidRequestException if no shard has the entry's bytes */
  def file(entry: IndexEntry): String = {
    val length =
      shards.getOrElse(entry.file, fault(s"`${entry.key}` is in `${entry.file}`, which is not a shard"))
    if (entry.start < 0 || entry.end < entry.start || entry.end > length)
      fault(
        s"`${entry.key}` is at the bytes ${entry.start} to ${entry.end} of ${entry.file}, which has $length")
    entry.file
  }

  /** @throws InvalidRequestException if dtype, shape and size of the entry are not consistent */
  def tensor(entry: IndexEntry): TensorInfo = {
    val dtype =
      Dtype.of(entry.dtype).getOrElse(
        fault(s"`${entry.key}` has the dtype `${entry.dtype}`, which does not exist"))
    val size = entry.end - entry.start
    if (entry.shape.exists(_ < 0) || entry.shape.foldLeft(BigInt(dtype.bits))(_ * _) != BigInt(size) * 8)
      fault(s"`${entry.key}` has $size bytes, which do not fit ${dtype.name} ${entry.shape.mkString("[", ", ", "]")}")
    TensorInfo(entry.key, dtype, entry.shape.map(_.toLong).toVector, entry.start, entry.end)
  }

  private def fault(detail: String) = throw new InvalidRequestException(
    s"$path is wrong: tensor $detail. Delete it, and write with `generate_index` to make a new one.")
}

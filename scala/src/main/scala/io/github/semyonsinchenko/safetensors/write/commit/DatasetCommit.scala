package io.github.semyonsinchenko.safetensors.write.commit

import java.io.{FileNotFoundException, IOException}
import java.util.UUID

import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.common.Parallel
import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, DatasetFiles, Manifest, ShardRecord}
import io.github.semyonsinchenko.safetensors.index.IndexPart
import io.github.semyonsinchenko.safetensors.write.plan.WritePlan
import io.github.semyonsinchenko.safetensors.write.shards.ColumnSummary

/**
 * Makes what the tasks wrote a part of the dataset: index, shards, and then the manifest, by which all of it becomes visible at
 * once. One commit at a time, under the lock.
 *
 * @param id of the write
 */
private[write] final class DatasetCommit(
    plan: WritePlan,
    target: Target,
    id: UUID,
    job: CommitJob,
    index: IndexCommit,
    conf: Configuration) {
  import target.directory

  private val pending = new PendingCommit(directory, id, conf)
  private val cleanup = new Cleanup(directory, conf)
  private val log     = LoggerFactory.getLogger(getClass)

  def run(written: Seq[ShardsWritten]): Unit =
    Using.resource(CommitLock.acquire(directory, conf)) { lock =>
      // All that depends on the dataset is decided here: other writes may have committed since this one was planned.
      val old = Target.check(directory, target.existing, plan, conf)
      PendingCommit.recover(directory, old, conf)
      val kept     = old.filter(_ => target.existing == Existing.Keep)
      val replaced = old.filter(_ => target.existing == Existing.Replace)
      val indexed  = index.isDue(kept)
      val shards   = written.flatMap(_.shards)
      val manifest = manifestOf(kept, written)
      val obsolete = replaced.toSeq.flatMap(_.shards).map(_.file) ++ indexFiles(old)
      pending.begin(shards.map(_.file) ++ obsolete :+ IndexPart.nameOf(id))
      val committed =
        try {
          if (old.isEmpty) claim.write(directory, conf)
          job.commit()
          checkPresent(shards)
          val parts = if (indexed) index.prepare(kept, written) else Nil
          lock.verify()
          index.publish(parts)
          val complete = manifest.copy(parts = Some(parts))
          publish(complete)
          complete
        } catch { case NonFatal(e) => cleanup.attempt("undo a failed commit")(undo(shards)); throw e }
      finish(committed, obsolete)
      BatchSizeAdvice.of(plan, shards).foreach(log.warn)
    }

  /**
   * A dataset of no rows, for a first write to begin with: without a manifest, readers would take its first shards for plain
   * files, whether or not the others follow.
   */
  private val claim = Manifest(UUID.randomUUID().toString, plan.mode.name, plan.options, Nil, Nil)

  /** A path that is not the same place on every node passes all commits, and would leave a manifest of shards that are nowhere. */
  private def checkPresent(shards: Seq[ShardRecord]): Unit = {
    val present = lookFor(shards).map(status => status.getPath.getName -> status.getLen).toMap
    shards.find(shard => !present.get(shard.file).contains(shard.bytes)).foreach { shard =>
      throw new IOException(
        s"Shard ${shard.file} was written, but is not in $directory as the driver sees it. Name a path that is the same " +
          "place on every node, such as HDFS, an object store or a shared mount.")
    }
  }

  // A listing finds a thousand shards by one request, but finds those of the whole dataset: there may be a million.
  private def lookFor(shards: Seq[ShardRecord]): Seq[FileStatus] = {
    val fs = directory.getFileSystem(conf)
    def look(shard: ShardRecord) =
      try Some(fs.getFileStatus(new Path(directory, shard.file)))
      catch { case _: FileNotFoundException => None }
    if (shards.size <= 1000) Parallel.map(shards)(look).flatten else fs.listStatus(directory).toSeq
  }

  /** The files of the index, and an index that no manifest names. */
  private def indexFiles(manifest: Option[Manifest]): Seq[String] =
    IndexPart.OnlyFile +: manifest.toSeq.flatMap(_.indexParts).map(_.file)

  private def manifestOf(kept: Option[Manifest], written: Seq[ShardsWritten]): Manifest = Manifest(
    id.toString,
    plan.mode.name,
    plan.options,
    schemaOf(kept, written),
    kept.fold(Seq.empty[ShardRecord])(_.shards) ++ written.flatMap(_.shards)
  )

  /** Parts without rows know no samples, and do not count where others do. */
  private def schemaOf(kept: Option[Manifest], written: Seq[ShardsWritten]): Seq[ColumnRecord] = {
    val all      = kept.map(old => ShardsWritten(old.shards, old.schema, Nil)).toSeq ++ written
    val withRows = all.filter(_.shards.nonEmpty)
    ColumnSummary.merge((if (withRows.isEmpty) written else withRows).map(_.schema))
  }

  /**
   * Writes the manifest. The file system may report an error for what arrived: then this write has succeeded, and who tried
   * again would have its rows twice.
   */
  private def publish(manifest: Manifest): Unit =
    try manifest.write(directory, conf)
    catch {
      case e: IOException if arrived(e) =>
        log.warn(s"The manifest in $directory is written, though that ended in an error.", e)
    }

  private def arrived(error: IOException): Boolean =
    try Manifest.read(directory, conf).exists(_.commitId == id.toString)
    catch {
      case NonFatal(e) =>
        error.addSuppressed(e)
        throw new IOException(
          s"It is not known whether the write to $directory took effect: its ${Manifest.FileName} could not be " +
            s"written for certain, nor be read again. It did if `commit_id` is $id there; if not, write again. The error was: " +
            error.getMessage,
          error
        )
    }

  /** Leaves what a manifest names: this write's may have arrived, and another write may have taken the lock. */
  private def undo(shards: Seq[ShardRecord]): Unit = {
    val manifest = Manifest.read(directory, conf)
    if (cleanup.delete(shards.map(_.file) :+ IndexPart.nameOf(id), manifest)) {
      if (manifest.exists(_.commitId == claim.commitId)) {
        cleanup.delete(indexFiles(manifest), manifest)
        Manifest.delete(directory, conf)
      }
      pending.end()
    }
  }

  /** The write has succeeded; what is left to do is not worth an error. */
  private def finish(manifest: Manifest, obsolete: Seq[String]): Unit = {
    cleanup.attempt("clean up")(index.cleanUp())
    if (cleanup.delete(obsolete, Some(manifest)))
      cleanup.attempt("clean up")(pending.end())
    // A listing of a million files would take longer than the write.
    if (manifest.shards.size <= DatasetFiles.MaxListed)
      cleanup.attempt("delete leftovers")(Leftovers.delete(directory, conf))
    ()
  }
}

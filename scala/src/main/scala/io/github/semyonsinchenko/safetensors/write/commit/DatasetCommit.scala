package io.github.semyonsinchenko.safetensors.write.commit

import java.io.{FileNotFoundException, IOException}
import java.util.UUID

import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.SparkSession
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.common.Parallel
import io.github.semyonsinchenko.safetensors.dataset.{DatasetFiles, Manifest, ShardRecord}
import io.github.semyonsinchenko.safetensors.index.IndexPart
import io.github.semyonsinchenko.safetensors.storage.ConditionalWrite
import io.github.semyonsinchenko.safetensors.write.plan.WritePlan

/**
 * Makes what the tasks wrote a part of the dataset: shards, index, and then the manifest, which makes all of it visible at once.
 * The lock allows one commit at a time.
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
    Using.resource(LockWait.acquire(directory, LockRecord.of(application), conf)) { lock =>
      // All that depends on the dataset is decided here: other writes may have committed since this one was planned.
      val (old, found) = recovered()
      val kept         = old.filter(_ => target.existing == Existing.Keep)
      val replaced     = old.filter(_ => target.existing == Existing.Replace)
      val indexed      = index.isDue(kept)
      val shards       = written.flatMap(_.shards)
      val manifest     = manifestOf(kept, written)
      val taken        = indexFiles(old)
      val obsolete     = taken ++ replaced.toSeq.flatMap(_.shards).map(_.file)
      pending.begin(shards.map(_.file) ++ obsolete :+ IndexPart.nameOf(id))
      val committed =
        try {
          val unchanged = if (old.isEmpty) claimed(found, lock) else found
          lock.verify()
          job.commit()
          checkPresent(shards)
          val parts = if (indexed) index.prepare(kept, written, taken) else Nil
          lock.verify()
          index.publish(parts)
          val complete = manifest.copy(parts = Some(parts))
          publish(complete, shards, unchanged, lock)
          complete
        } catch { case NonFatal(e) => cleanup.attempt("undo a failed commit")(undo(shards, lock)); throw e }
      finish(committed, obsolete, lock)
      cleanup.attempt("advise on `batch_size`")(BatchSizeAdvice.of(plan, shards).foreach(log.warn))
    }

  /**
   * The dataset that is there, without what commits that died or lost the lock have left, and the condition that its manifest
   * does not change. A commit that lost the lock may still replace it.
   */
  private def recovered(): (Option[Manifest], ConditionalWrite) = {
    val found = PendingCommit.found(directory, conf)
    PendingCommit.withdraw(found, conf)
    val unchanged = Manifest.unchanged(directory, conf)
    val old       = Target.check(directory, target.existing, _ => plan, conf)
    // The shards of a damaged manifest are not known, and stay.
    if (!old.contains(Target.Damaged)) PendingCommit.recover(directory, found, old, conf)
    (old, unchanged)
  }

  /** Writes the claim, and returns the condition that it does not change. */
  private def claimed(unchanged: ConditionalWrite, lock: CommitLock): ConditionalWrite = {
    claim.replace(directory, pending.draft, unchanged, conf)(lock.verify())
    Manifest.unchanged(directory, conf)
  }

  private def application: String = SparkSession.active.sparkContext.applicationId

  /**
   * A dataset of no rows, which a first write begins with. Without a manifest, readers would take its first shards for plain
   * files.
   */
  private val claim = Manifest(UUID.randomUUID().toString, plan.mode.ofDataset, plan.options, Nil, Nil)

  /** With a path that is another place on each node, all tasks succeed, but the shards are not in the driver's directory. */
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
  private def indexFiles(manifest: Option[Manifest]): Seq[String] = {
    val named = manifest.toSeq.flatMap(_.indexParts).map(_.file)
    val only  = new Path(directory, IndexPart.OnlyFile)
    if (named.contains(only.getName) || !only.getFileSystem(conf).exists(only)) named
    else named :+ only.getName
  }

  private def manifestOf(kept: Option[Manifest], written: Seq[ShardsWritten]): Manifest = Manifest(
    id.toString,
    plan.mode.ofDataset,
    plan.recordedOptions,
    CommittedColumns.of(plan.mode.ofDataset, kept, written),
    kept.fold(Seq.empty[ShardRecord])(_.shards) ++ written.flatMap(_.shards),
    // The first rows say in which order columns are.
    keyPlace = kept.filter(_.shards.nonEmpty).fold(plan.keyPlace)(_.keyPlace)
  )

  /**
   * Replaces the manifest. The file system may report an error although it has done so. The write has succeeded then: an error
   * would make the user repeat it.
   */
  private def publish(
      manifest: Manifest,
      shards: Seq[ShardRecord],
      unchanged: ConditionalWrite,
      lock: CommitLock): Unit =
    try manifest.replace(directory, pending.draft, unchanged, conf)(lock.verify())
    catch {
      case e: LostLockException => throw e
      case e: IOException =>
        if (!arrived(shards, e)) throw (if (lock.isHeld) e else unknown(shards, e))
        log.warn(s"The manifest in $directory is written, though the request failed.", e)
    }

  /** Another write that has taken the lock may have appended since. */
  private def arrived(shards: Seq[ShardRecord], error: IOException): Boolean =
    try Manifest.read(directory, conf).exists(manifest =>
        manifest.commitId == id.toString || shards.headOption.exists(manifest.shards.contains))
    catch { case NonFatal(e) => error.addSuppressed(e); throw unknown(shards, error) }

  private def unknown(shards: Seq[ShardRecord], error: IOException) = new IOException(
    s"It is unknown whether the write to $directory took effect: replacing its ${Manifest.FileName} ended in an error. It did if " +
      s"the manifest has the `commit_id` $id${shards.headOption.fold("")(shard => s", or names ${shard.file}")}; if not, look that " +
      s"no other write has replaced it since, and write again. The error was: ${error.getMessage}",
    error
  )

  /** Leaves what a manifest names: this write's own may have arrived, or another write may have taken the lock. */
  private def undo(shards: Seq[ShardRecord], lock: CommitLock): Unit = {
    if (cleanup.delete(shards.map(_.file) :+ IndexPart.nameOf(id), Manifest.read(directory, conf))) {
      // Deleting shards may have taken longer than others respect the lock.
      if (lock.isHeld && Manifest.read(directory, conf).exists(_.commitId == claim.commitId)) {
        Manifest.delete(directory, conf)
        cleanup.delete(Seq(IndexPart.OnlyFile), None)
      }
      pending.end()
    }
  }

  /** The write has succeeded: nothing that fails from here on is an error of it. */
  private def finish(manifest: Manifest, obsolete: Seq[String], lock: CommitLock): Unit = {
    cleanup.attempt("clean up")(index.cleanUp())
    cleanup.attempt("clean up")(if (lock.isHeld && cleanup.delete(obsolete, Some(manifest))) pending.end())
    // A listing of a million files would take longer than the write.
    if (manifest.shards.size <= DatasetFiles.MaxListed)
      cleanup.attempt("delete leftovers")(if (lock.isHeld) Leftovers.delete(directory, manifest, conf))
    ()
  }
}

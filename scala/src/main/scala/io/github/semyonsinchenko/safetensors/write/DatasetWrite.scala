package io.github.semyonsinchenko.safetensors.write

import java.io.IOException
import java.util.UUID

import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write._
import org.apache.spark.util.SerializableConfiguration
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, CommitLock, Manifest, ShardRecord}

/** The driver's side of a write: tasks write shards, and the manifest makes them a dataset. */
private[write] final class DatasetWrite(plan: WritePlan, target: Target, conf: Configuration)
    extends BatchWrite {

  private val id    = UUID.randomUUID()
  private val job   = new CommitJob(target.directory, id, conf)
  private val index = new IndexCommit(target, plan.mode, id, conf)
  private val log   = LoggerFactory.getLogger(getClass)

  override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory = {
    try job.setUp()
    catch {
      // Spark calls `abort` only for what fails later.
      case NonFatal(e) => attempt("clean up")(job.abort()); throw e
    }
    val shared = SparkSession.active.sparkContext.broadcast(new SerializableConfiguration(conf))
    new ShardWriterFactory(plan, target.directory.toString, id,
      Option.when(target.indexed)(index.runs.toString), shared)
  }

  // A task asks Spark's coordinator itself, in `SparkHadoopMapRedUtil`: the coordinator of DSv2 counts the loser of a
  // speculation as failed, and bars every retry after an upload that failed.
  override def useCommitCoordinator(): Boolean = false

  override def commit(messages: Array[WriterCommitMessage]): Unit = {
    val written = ShardsWritten.of(messages)
    Using.resource(CommitLock.acquire(target.directory, conf)) { lock =>
      val old = Manifest.read(target.directory, conf)
      // Another write may have come in between since the plan was made.
      if (target.existing == Existing.Keep) old.foreach(Target.checkLike(_, plan, target.directory))
      val kept = old.filter(_ => target.existing == Existing.Keep)
      index.prepare(kept, written.flatMap(_.indexRuns))
      job.commit()
      checkPresent(written.flatMap(_.shards))
      lock.verify()
      index.publish()
      publish(manifestOf(kept, written))
      // The write has succeeded; what is left to do is not worth an error.
      attempt("delete the old index")(index.retire())
      attempt("clean up")(index.cleanUp())
      if (target.existing == Existing.Replace) old.foreach(replaced => delete(replaced.shards.map(_.file)))
    }
  }

  /** A path that is not the same place on every node passes all commits, and would leave a manifest of shards that are nowhere. */
  private def checkPresent(shards: Seq[ShardRecord]): Unit = {
    val present = target.directory.getFileSystem(conf).listStatus(target.directory)
      .iterator.map(status => status.getPath.getName -> status.getLen).toMap
    shards.find(shard => !present.get(shard.file).contains(shard.bytes)).foreach { shard =>
      throw new IOException(
        s"Shard ${shard.file} was written, but is not in ${target.directory} as the driver sees it. Name a path that is the same " +
          "place on every node, such as HDFS, an object store or a shared mount.")
    }
  }

  private def manifestOf(kept: Option[Manifest], written: Seq[ShardsWritten]): Manifest = Manifest(
    id.toString,
    plan.mode.name,
    plan.options,
    schemaOf(kept, written),
    kept.toSeq.flatMap(_.shards) ++ written.flatMap(_.shards)
  )

  /** Parts without rows know no samples, and do not count where others do. */
  private def schemaOf(kept: Option[Manifest], written: Seq[ShardsWritten]): Seq[ColumnRecord] = {
    val all      = kept.map(old => ShardsWritten(old.shards, old.schema, Nil)).toSeq ++ written
    val withRows = all.filter(_.shards.nonEmpty)
    ColumnSummary.merge((if (withRows.isEmpty) all else withRows).map(_.schema))
  }

  /**
   * Writes the manifest. The file system may report an error for what arrived: then this write has succeeded, and who tried
   * again would have its rows twice.
   */
  private def publish(manifest: Manifest): Unit =
    try manifest.write(target.directory, conf)
    catch {
      case e: IOException if arrived(e) =>
        log.warn(s"The manifest in ${target.directory} is written, though that ended in an error.", e)
    }

  private def arrived(error: IOException): Boolean =
    try Manifest.read(target.directory, conf).exists(_.commitId == id.toString)
    catch {
      case e: IOException =>
        error.addSuppressed(e)
        throw new IOException(
          s"It is not known whether the write to ${target.directory} took effect: its ${Manifest.FileName} could not be " +
            s"written for certain, nor be read again. It did if `commit_id` is $id there; if not, write again. The error was: " +
            error.getMessage,
          error
        )
    }

  /** Leaves what a manifest names: this write's may have arrived, and another write may have appended to it since. */
  override def abort(messages: Array[WriterCommitMessage]): Unit = {
    attempt("clean up")(job.abort())
    attempt("clean up")(index.cleanUp())
    // Shards may stand in the directory already: with version 2 of Hadoop's algorithm, or if the manifest failed.
    attempt("delete the shards of a failed write") {
      val named = Manifest.read(target.directory, conf).toSeq.flatMap(_.shards).map(_.file).toSet
      delete(ShardsWritten.of(messages).flatMap(_.shards).map(_.file).filterNot(named))
    }
  }

  /** For steps whose failure must not hide the error that the user should see. */
  private def attempt(what: String)(step: => Any): Unit =
    try { step; () }
    catch { case NonFatal(e) => log.warn(s"Could not $what in ${target.directory}.", e) }

  /** Shards that no manifest names any more. What cannot be deleted is left, as no reader takes it for data. */
  private def delete(files: Seq[String]): Unit = {
    val fs = target.directory.getFileSystem(conf)
    files.foreach(file => attempt(s"delete $file")(fs.delete(new Path(target.directory, file), false)))
  }

  override def toString: String = s"safetensors ${target.directory}"
}

/** Goes to the executors, which have no session: the Hadoop configuration travels with it. */
private final class ShardWriterFactory(
    plan: WritePlan,
    directory: String,
    id: UUID,
    indexRuns: Option[String],
    conf: Broadcast[SerializableConfiguration])
    extends DataWriterFactory {

  override def createWriter(partitionId: Int, taskId: Long): DataWriter[InternalRow] = {
    val hadoop = conf.value.value
    val task   = new CommitJob(new Path(directory), id, hadoop).task(partitionId, taskId)
    new TaskWriter(plan, partitionId, task, indexRuns.map(runs => new IndexRuns(new Path(runs), hadoop)))
  }
}

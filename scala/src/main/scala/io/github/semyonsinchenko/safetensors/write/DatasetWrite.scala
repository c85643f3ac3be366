package io.github.semyonsinchenko.safetensors.write

import java.io.IOException
import java.util.UUID

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write._
import org.apache.spark.util.SerializableConfiguration

import io.github.semyonsinchenko.safetensors.index.{DuplicateKeyException, IndexRuns}
import io.github.semyonsinchenko.safetensors.storage.StorageException
import io.github.semyonsinchenko.safetensors.write.commit.{
  CachedReads,
  Cleanup,
  CommitJob,
  DatasetCommit,
  IndexCommit,
  ShardsWritten,
  Target
}
import io.github.semyonsinchenko.safetensors.write.plan.WritePlan
import io.github.semyonsinchenko.safetensors.write.shards.TensorNames

/** The driver's side of a write: tasks write shards, and the manifest makes them a dataset. */
private[write] final class DatasetWrite(plan: WritePlan, target: Target, conf: Configuration)
    extends BatchWrite {

  private val id      = UUID.randomUUID()
  private val job     = new CommitJob(target.directory, id, conf)
  private val index   = new IndexCommit(target.directory, plan, id, conf)
  private val cleanup = new Cleanup(target.directory, conf)

  override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory = {
    try job.setUp()
    catch {
      // Spark calls `abort` only for what fails later.
      case NonFatal(e) => cleanup.attempt("clean up")(job.abort()); throw e
    }
    val shared = SparkSession.active.sparkContext.broadcast(new SerializableConfiguration(conf))
    new ShardWriterFactory(plan, target.directory.toString, id,
      Option.when(target.indexed)(index.runs.toString), shared)
  }

  // A task asks Spark's coordinator itself, in `SparkHadoopMapRedUtil`: the coordinator of DSv2 counts the loser of a
  // speculation as failed, and bars every retry after an upload that failed.
  override def useCommitCoordinator(): Boolean = false

  override def commit(messages: Array[WriterCommitMessage]): Unit = {
    try new DatasetCommit(plan, target, id, job, index, conf).run(ShardsWritten.of(messages))
    catch {
      case e: DuplicateKeyException =>
        throw TensorNames.explain(e.key, plan).fold(e)(detail =>
          new DuplicateKeyException(e.key, e.getMessage + detail))
      case e: IOException =>
        throw new StorageException(s"The write to ${target.directory} failed: ${e.getMessage}", e)
    }
    cleanup.attempt("renew what is cached")(CachedReads.renew(target.directory))
    ()
  }

  override def abort(messages: Array[WriterCommitMessage]): Unit = {
    cleanup.attempt("clean up")(job.abort())
    cleanup.attempt("clean up")(index.cleanUp())
    ()
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

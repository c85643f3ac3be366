package io.github.semyonsinchenko.safetensors.write.commit

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path, PathIsNotEmptyDirectoryException}
import org.apache.hadoop.mapreduce._
import org.apache.hadoop.mapreduce.lib.output.{
  FileOutputCommitter,
  PathOutputCommitter,
  PathOutputCommitterFactory
}
import org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitter
import org.apache.hadoop.mapreduce.task.{JobContextImpl, TaskAttemptContextImpl}

/**
 * One write as the Hadoop committer of its file system sees it: the one that the configuration names, such as S3A's magic
 * committer, and else the plain one, which keeps files under `_temporary` until the job commits.
 */
private[write] final class CommitJob(directory: Path, id: UUID, base: Configuration) {

  private val conf = {
    val own = new Configuration(base)
    // Two jobs in one directory would otherwise share `_temporary/0`, and the one that commits first would publish the
    // other's shards and then delete its files. So each has a number of its own, and cleans up behind itself alone.
    own.setInt(MRJobConfig.APPLICATION_ATTEMPT_ID, (id.getMostSignificantBits >>> 33).toInt)
    own.setBoolean(FileOutputCommitter.FILEOUTPUTCOMMITTER_CLEANUP_SKIPPED, true)
    // The manifest is what tells that a write succeeded.
    own.setBoolean(FileOutputCommitter.SUCCESSFUL_JOB_OUTPUT_DIR_MARKER, false)
    own.setBoolean(CommitJob.AbortUploads, false)
    // How the committers of object stores know jobs of Spark apart.
    own.set("spark.sql.sources.writeJobUUID", id.toString)
    own
  }

  private val jobId      = new JobID(id.toString.replace("-", ""), 0)
  private val jobContext = new JobContextImpl(conf, jobId)

  private def jobCommitter(settings: Configuration = conf): PathOutputCommitter =
    committer(new TaskAttemptContextImpl(settings, new TaskAttemptID(new TaskID(jobId, TaskType.MAP, 0), 0)))

  private def committer(context: TaskAttemptContext): PathOutputCommitter =
    PathOutputCommitterFactory.createCommitter(directory, context)

  def setUp(): Unit = jobCommitter().setupJob(jobContext)

  /** @param attempt a number that no other attempt in this application has */
  def task(partition: Int, attempt: Long): CommitTask = {
    val taskId  = new TaskID(jobId, TaskType.MAP, partition)
    val context = new TaskAttemptContextImpl(conf, new TaskAttemptID(taskId, (attempt & Int.MaxValue).toInt))
    new CommitTask(committer(context), context)
  }

  /** Makes the files of the tasks that committed visible. */
  def commit(): Unit = {
    val committer = jobCommitter()
    committer.commitJob(jobContext)
    cleanUp(committer)
  }

  def abort(): Unit = {
    val committer = jobCommitter(abortingUploads)
    committer match {
      // Its `abortJob` would delete the whole `_temporary`, other jobs' files too.
      case _: FileOutputCommitter =>
      case other                  => other.abortJob(jobContext, JobStatus.State.FAILED)
    }
    cleanUp(committer)
  }

  // S3A knows no way to find the uploads of this job's committed tasks alone. Another job whose uploads it takes fails.
  private def abortingUploads: Configuration = {
    val own = new Configuration(conf)
    own.setBoolean(CommitJob.AbortUploads, base.getBoolean(CommitJob.AbortUploads, true))
    own
  }

  private def cleanUp(committer: PathOutputCommitter): Unit = ownFolder(committer).foreach { own =>
    val fs = own.getFileSystem(conf)
    deleteWhole(own, fs)
    deleteIfEmpty(own.getParent, fs)
  }

  /** The job's folder in `_temporary`, which is left to us; S3A's committers clean up by job themselves. */
  private def ownFolder(committer: PathOutputCommitter): Option[Path] = committer match {
    case plain: FileOutputCommitter  => Some(plain.getJobAttemptPath(jobContext))
    case manifest: ManifestCommitter => Some(manifest.getJobAttemptPath(jobContext).getParent)
    case _                           => None
  }

  // Where deleting a folder is many steps, a task that still runs may commit meanwhile, from a folder that is not deleted yet
  // to one that was passed already. What it wrote is gone then, so that it does so once.
  private def deleteWhole(directory: Path, fs: FileSystem): Unit = {
    fs.delete(directory, true)
    if (fs.exists(directory)) { fs.delete(directory, true); () }
  }

  private def deleteIfEmpty(directory: Path, fs: FileSystem): Unit =
    try { if (fs.exists(directory) && fs.listStatus(directory).isEmpty) fs.delete(directory, false); () }
    catch { case _: PathIsNotEmptyDirectoryException => } // another job began meanwhile
}

private object CommitJob {
  // Whether S3A's committers end all uploads in the directory when they are done with a job: other jobs' uploads too.
  private val AbortUploads = "fs.s3a.committer.abort.pending.uploads"
}

/** A task attempt's side of a [[CommitJob]]. */
private[write] final class CommitTask(committer: PathOutputCommitter, context: TaskAttemptContext) {

  private var committing = false

  def setUp(): Unit = committer.setupTask(context)

  /** Where the attempt's files go until it commits. */
  def workPath: Path = committer.getWorkPath

  def conf: Configuration = context.getConfiguration

  /** Commits, if Spark's coordinator grants it to this attempt. */
  def commit(): Unit = {
    committing = true
    val id = context.getTaskAttemptID
    org.apache.spark.mapred.SparkHadoopMapRedUtil.commitTask(committer, context, id.getJobID.getId,
      id.getTaskID.getId)
  }

  /** Deletes the attempt's files, of which version 2 of Hadoop's algorithm may have put some in the directory already. */
  def abort(files: Seq[String]): Unit = {
    committer.abortTask(context)
    committer match {
      case plain: FileOutputCommitter if committing =>
        val fs = plain.getOutputPath.getFileSystem(conf)
        files.foreach(file => fs.delete(new Path(plain.getOutputPath, file), false))
      case _ =>
    }
  }
}

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
 * One write as a job of the Hadoop committer of its file system: the committer that the configuration names, such as S3A's
 * magic committer, or the plain one, which keeps files under `_temporary` until the job commits.
 */
private[write] final class CommitJob(directory: Path, id: UUID, base: Configuration) {

  private val conf       = CommitSettings.of(base, id)
  private val jobId      = new JobID(id.toString.replace("-", ""), 0)
  private val jobContext = new JobContextImpl(conf, jobId)

  private def jobCommitter(settings: Configuration = conf): PathOutputCommitter =
    committer(new TaskAttemptContextImpl(settings, new TaskAttemptID(new TaskID(jobId, TaskType.MAP, 0), 0)))

  private def committer(context: TaskAttemptContext): PathOutputCommitter =
    PathOutputCommitterFactory.createCommitter(directory, context) match {
      case plain if plain.getClass == classOf[FileOutputCommitter] => new PlainCommitter(directory, context)
      case other => CommitSettings.keepTemporary(context.getConfiguration); other
    }

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
    val committer = jobCommitter(CommitSettings.abortingUploads(conf, base))
    committer.abortJob(jobContext, JobStatus.State.FAILED)
    cleanUp(committer)
  }

  private def cleanUp(committer: PathOutputCommitter): Unit = committer match {
    case manifest: ManifestCommitter =>
      JobFolder.delete(manifest.getJobAttemptPath(jobContext).getParent, conf)
    // The others delete what belongs to their job themselves.
    case _ =>
  }
}

/** Hadoop's plain committer, except that a job deletes only its own folder of `_temporary`. */
private final class PlainCommitter(directory: Path, context: TaskAttemptContext)
    extends FileOutputCommitter(directory, context) {

  // `commitJob` and `abortJob` call it.
  override def cleanupJob(job: JobContext): Unit =
    JobFolder.delete(getJobAttemptPath(job), job.getConfiguration)
}

/** A job's folder in `_temporary`. */
private object JobFolder {

  def delete(folder: Path, conf: Configuration): Unit = {
    val fs = folder.getFileSystem(conf)
    deleteWhole(folder, fs)
    deleteIfEmpty(folder.getParent, fs)
  }

  // Where deleting a folder takes many steps, a running task may commit meanwhile and move files into a part that has been
  // deleted already. It can do so once, as the files that it moves are deleted then.
  private def deleteWhole(folder: Path, fs: FileSystem): Unit = {
    fs.delete(folder, true)
    if (fs.exists(folder)) { fs.delete(folder, true); () }
  }

  private def deleteIfEmpty(folder: Path, fs: FileSystem): Unit =
    try { if (fs.exists(folder) && fs.listStatus(folder).isEmpty) fs.delete(folder, false); () }
    catch { case _: PathIsNotEmptyDirectoryException => } // another job has begun
}

/** One task attempt of a [[CommitJob]]. */
private[write] final class CommitTask(committer: PathOutputCommitter, context: TaskAttemptContext) {

  def setUp(): Unit = committer.setupTask(context)

  /** Where the attempt's files are until it commits. */
  def workPath: Path = committer.getWorkPath

  def conf: Configuration = context.getConfiguration

  /** Commits, if Spark's coordinator lets this attempt do it. */
  def commit(): Unit = {
    val id = context.getTaskAttemptID
    org.apache.spark.mapred.SparkHadoopMapRedUtil.commitTask(committer, context, id.getJobID.getId,
      id.getTaskID.getId)
  }

  def abort(): Unit = committer.abortTask(context)
}

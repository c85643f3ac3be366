package io.github.semyonsinchenko.safetensors.write.commit

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapreduce.MRJobConfig
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter

/**
 * The committers' settings that commits rely on. Users set them for other formats, and some of those values lose data here, so
 * that none is inherited.
 */
private[commit] object CommitSettings {
  private val AbortUploads = "fs.s3a.committer.abort.pending.uploads"

  private val fixed = Map(
    // Version 2 moves a task's files into the directory before the job commits.
    FileOutputCommitter.FILEOUTPUTCOMMITTER_ALGORITHM_VERSION -> "1",
    // `PlainCommitter` deletes its own folder only. Hadoop 3.5 logs a warning where this is true.
    FileOutputCommitter.FILEOUTPUTCOMMITTER_CLEANUP_SKIPPED -> "false",
    // The manifest marks a write that has succeeded.
    FileOutputCommitter.SUCCESSFUL_JOB_OUTPUT_DIR_MARKER -> "false",
    // `replace` deletes the whole directory when the job commits, and `fail` refuses one that exists.
    "fs.s3a.committer.staging.conflict-mode" -> "append",
    // Would add a UUID to the names of shards, which the manifest does not know.
    "fs.s3a.committer.staging.unique-filenames" -> "false",
    // Would end the uploads of other jobs in the directory.
    AbortUploads -> "false"
  )

  /** @param id of the write, by which its job differs from others in the same directory */
  def of(base: Configuration, id: UUID): Configuration = {
    val own = new Configuration(base)
    fixed.foreach { case (name, value) => own.set(name, value) }
    // The plain committer's folder in `_temporary`. By default it is `0` for every job.
    own.setInt(MRJobConfig.APPLICATION_ATTEMPT_ID, (id.getMostSignificantBits >>> 33).toInt)
    // How the committers of object stores identify a job. They look for their own setting first.
    own.set("spark.sql.sources.writeJobUUID", id.toString)
    own.unset("fs.s3a.committer.uuid")
    own
  }

  /** The manifest committer would delete `_temporary`, with the files of other jobs. */
  def keepTemporary(conf: Configuration): Unit =
    conf.setBoolean(FileOutputCommitter.FILEOUTPUTCOMMITTER_CLEANUP_SKIPPED, true)

  /**
   * For a job that fails. S3A cannot find the uploads of one job's committed tasks, so it ends all uploads in the directory, and
   * other jobs there fail too, unless the user forbids it.
   */
  def abortingUploads(conf: Configuration, base: Configuration): Configuration = {
    val own = new Configuration(conf)
    own.setBoolean(AbortUploads, base.getBoolean(AbortUploads, true))
    own
  }
}

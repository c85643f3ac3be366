package io.github.semyonsinchenko.safetensors.write.commit

import java.io._

import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage
import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.execution.datasources.{ExecutedWriteSummary, WriteTaskResult}

import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, ShardRecord}

/** What a task wrote. */
private[write] final case class ShardsWritten(
    shards: Seq[ShardRecord],
    schema: Seq[ColumnRecord],
    indexRuns: Seq[String]) {

  /**
   * How it travels to the driver: as bytes in a class of Spark's. Spark reads the results of tasks with a class loader
   * that does not know the jars that came later, by `ADD JAR` or `addArtifacts`.
   */
  def toMessage: WriterCommitMessage = {
    val bytes = new ByteArrayOutputStream
    val out   = new ObjectOutputStream(bytes)
    out.writeObject(this)
    out.close()
    WriteTaskResult(new TaskCommitMessage(bytes.toByteArray), ExecutedWriteSummary(Set.empty, Nil))
  }
}

private[write] object ShardsWritten {

  /** What the tasks wrote; those that did not commit have no message. */
  def of(messages: Array[WriterCommitMessage]): Seq[ShardsWritten] =
    messages.toSeq.filter(_ != null).map(message =>
      read(message.asInstanceOf[WriteTaskResult].commitMsg.obj.asInstanceOf[Array[Byte]]))

  private def read(bytes: Array[Byte]): ShardsWritten = {
    val in = new ObjectInputStream(new ByteArrayInputStream(bytes)) {
      override def resolveClass(description: ObjectStreamClass): Class[_] =
        Class.forName(description.getName, false, classOf[ShardsWritten].getClassLoader)
    }
    in.readObject().asInstanceOf[ShardsWritten]
  }
}

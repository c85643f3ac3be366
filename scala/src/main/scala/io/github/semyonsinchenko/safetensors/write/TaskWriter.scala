package io.github.semyonsinchenko.safetensors.write

import org.apache.hadoop.fs.Path
import org.apache.spark.SparkEnv
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}

import io.github.semyonsinchenko.safetensors.index.IndexRuns
import io.github.semyonsinchenko.safetensors.write.commit.{CommitTask, ShardsWritten}
import io.github.semyonsinchenko.safetensors.write.memory.{MemoryBound, Pages, Payload, SpillFile}
import io.github.semyonsinchenko.safetensors.write.plan.{WriteMode, WritePlan}
import io.github.semyonsinchenko.safetensors.write.shards.{
  BatchShardWriter,
  KeyValueShardWriter,
  ShardFile,
  ShardNames,
  Shards,
  WriteCounters
}

/**
 * One task attempt: its rows go to shards in a place of its own, which become the job's when it commits.
 *
 * @param index where its shards' index entries go, if there is an index
 */
private[write] final class TaskWriter(
    plan: WritePlan,
    partition: Int,
    task: CommitTask,
    index: Option[IndexRuns])
    extends DataWriter[InternalRow] {
  task.setUp()

  private val metrics = new WriteCounters
  private val pages =
    Pages.forTask(plan.columns.map(_.tensors).sum,
      new MemoryBound(SparkEnv.get.conf, Runtime.getRuntime.maxMemory, cores))
  private val shards = new Shards(plan.shardMetadata, new ShardNames(partition), open, index, metrics)
  private val writer = plan.mode match {
    case batch: WriteMode.Batch => new BatchShardWriter(plan, batch, partition, () => newPayload(), shards)
    case keyed: WriteMode.KeyValue =>
      new KeyValueShardWriter(plan, keyed, partition, () => newPayload(), shards)
  }

  /** How many tasks this JVM may run at once. */
  private def cores: Int =
    SparkEnv.get.conf.getInt("spark.executor.cores", Runtime.getRuntime.availableProcessors)

  private def newPayload(): Payload = new Payload(pages, () => SpillFile.create())

  private def open(name: String): ShardFile = ShardFile.create(new Path(task.workPath, name), task.conf)

  override def write(row: InternalRow): Unit = metrics.row(writer.write(row))

  override def currentMetricsValues(): Array[CustomTaskMetric] = metrics.values

  override def commit(): WriterCommitMessage = {
    writer.finish()
    task.commit()
    ShardsWritten(shards.records, writer.schema, shards.indexRuns).toMessage
  }

  override def abort(): Unit = task.abort()

  override def close(): Unit =
    try writer.close()
    finally pages.close()
}

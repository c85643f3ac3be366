package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

import io.github.semyonsinchenko.safetensors.dataset.DataFile

/** A planned read. */
private[read] final class SafetensorsScan(
    files: Seq[DataFile],
    layout: Layout,
    schema: StructType,
    required: StructType,
    pushed: Seq[(Predicate, TensorFilter)],
    conf: Configuration)
    extends Scan {

  override def readSchema(): StructType = required

  override def description(): String =
    s"safetensors ${files.size} files, layout ${layout.name}, columns ${required.fieldNames.mkString("[", ", ", "]")}, " +
      s"filters ${pushed.map(_._1).mkString("[", ", ", "]")}"

  // Here, not where the scan is built, which DESCRIBE does too: a table that is only written to may have any columns.
  override def toBatch: Batch = {
    layout.checkSchema(schema)
    new SafetensorsBatch(ScanPlan(partitions, layout.rows(required, pushed.map(_._2))), conf)
  }

  private def partitions: Seq[Seq[DataFile]] =
    if (layout.packsFiles) {
      val settings = SQLConf.get
      Packing.of(files, settings.filesMaxPartitionBytes, settings.filesOpenCostInBytes,
        SparkSession.active.sparkContext.defaultParallelism)
    } else files.map(Seq(_))
}

private final class SafetensorsBatch(plan: ScanPlan, conf: Configuration) extends Batch {

  override def planInputPartitions(): Array[InputPartition] = plan.partitions.map(FilesPartition(_)).toArray

  override def createReaderFactory(): PartitionReaderFactory = {
    val shared = SparkSession.active.sparkContext.broadcast(new SerializableConfiguration(conf))
    new FilesReaderFactory(plan.rows, shared)
  }
}

private final case class FilesPartition(files: Seq[DataFile]) extends InputPartition

/** Goes to the executors, which have no session: the Hadoop configuration travels with it. */
private final class FilesReaderFactory(rows: FileRows, conf: Broadcast[SerializableConfiguration])
    extends PartitionReaderFactory {

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new FilesReader(partition.asInstanceOf[FilesPartition].files, rows, conf.value.value)
}

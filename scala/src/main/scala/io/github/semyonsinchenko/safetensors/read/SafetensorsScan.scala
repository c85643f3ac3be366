package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

import io.github.semyonsinchenko.safetensors.dataset.DataFile

/** A planned read: a row for each file, a partition for each row. */
private[read] final class SafetensorsScan(
    files: Seq[DataFile],
    schema: StructType,
    required: StructType,
    conf: Configuration)
    extends Scan {

  override def readSchema(): StructType = required

  override def description(): String =
    s"safetensors ${files.size} files, tensors ${required.fieldNames.mkString("[", ", ", "]")}"

  // Here, not where the scan is built, which DESCRIBE does too: a table that is only written to may have any columns.
  override def toBatch: Batch = {
    ScanPlan.checkSchema(schema)
    new SafetensorsBatch(ScanPlan.of(files, required), conf)
  }
}

private final class SafetensorsBatch(plan: ScanPlan, conf: Configuration) extends Batch {

  override def planInputPartitions(): Array[InputPartition] = plan.files.map(FilePartition(_)).toArray

  override def createReaderFactory(): PartitionReaderFactory = {
    val shared = SparkSession.active.sparkContext.broadcast(new SerializableConfiguration(conf))
    new FileReaderFactory(plan.columns, shared)
  }
}

private final case class FilePartition(file: DataFile) extends InputPartition

/** Goes to the executors, which have no session: the Hadoop configuration travels with it. */
private final class FileReaderFactory(
    columns: Vector[TensorColumn],
    conf: Broadcast[SerializableConfiguration])
    extends PartitionReaderFactory {

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new WideReader(partition.asInstanceOf[FilePartition].file, columns, conf.value.value)
}

package io.github.semyonsinchenko.safetensors.read

import java.util.OptionalLong

import org.apache.hadoop.fs.Path
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

import io.github.semyonsinchenko.safetensors.common.TaskMetric
import io.github.semyonsinchenko.safetensors.read.rows.{FilePart, FilesSkippedMetric, ReadMetrics}
import io.github.semyonsinchenko.safetensors.storage.LocalFile

/**
 * A planned read. Equal scans share caches and exchanges.
 *
 * @param planned before the query runs
 */
private[read] final case class SafetensorsScan(planned: ScanPlan)
    extends Scan
    with SupportsReportStatistics
    with SupportsRuntimeV2Filtering {

  // Narrowed when the query runs, by the keys that the other side of a join has.
  private var plan = planned

  override def filterAttributes(): Array[NamedReference] = planned.filterable.toArray

  override def filter(predicates: Array[Predicate]): Unit = plan = planned.narrowed(predicates.toVector)

  private def files = plan.source.snapshot.files

  override def readSchema(): StructType = plan.required

  override def description(): String =
    s"safetensors ${plan.parts.size} of ${files.size} files, layout ${plan.source.layout.name}, " +
      s"columns ${plan.required.fieldNames.mkString("[", ", ", "]")}, filters ${plan.pushed.map(
          _._1).mkString("[", ", ", "]")}"

  override def estimateStatistics(): Statistics = new Statistics {
    override def sizeInBytes(): OptionalLong = OptionalLong.of(plan.bytes)
    override def numRows(): OptionalLong     = plan.rowCount.fold(OptionalLong.empty)(OptionalLong.of)
  }

  override def supportedCustomMetrics(): Array[CustomMetric] = ReadMetrics.all

  override def reportDriverMetrics(): Array[CustomTaskMetric] =
    Array(TaskMetric((new FilesSkippedMetric).name, files.size.toLong - plan.parts.size))

  // Here, not where the scan is built, which DESCRIBE does too: a table that is only written to may have any columns.
  override def toBatch: Batch = {
    plan.source.check()
    SafetensorsBatch(plan)(() => plan.task)
  }

  // By default Spark asks a reader factory, which would be made before the plan is narrowed.
  override def columnarSupportMode(): Scan.ColumnarSupportMode = Scan.ColumnarSupportMode.UNSUPPORTED
}

/** @param task what each task does. Asked for when the query runs: the plan may have been narrowed since. */
private final case class SafetensorsBatch(plan: ScanPlan)(task: () => TaskPlan) extends Batch {

  private lazy val partitions: Vector[FilesPartition] =
    if (plan.source.layout.packsFiles) {
      val settings = SQLConf.get
      val packing = Packing(settings.filesMaxPartitionBytes, settings.filesOpenCostInBytes,
        SparkSession.active.sparkContext.defaultParallelism)
      // Each split reads the header. A query that needs only headers gains nothing by splits.
      val packed = if (plan.readsData) packing.split(plan.parts) else packing.whole(plan.parts)
      packed.map(FilesPartition(_)).toVector
    } else plan.parts.map(part => FilesPartition(Seq(part)))

  override def planInputPartitions(): Array[InputPartition] = partitions.toArray

  // Shared only where it is of use: that takes longer than all else with which a read begins.
  override def createReaderFactory(): PartitionReaderFactory = {
    val shared = Option.unless(areLocal)(
      SparkSession.active.sparkContext.broadcast(new SerializableConfiguration(plan.source.conf)))
    new FilesReaderFactory(task(), shared)
  }

  private def areLocal: Boolean =
    partitions.iterator.flatMap(_.parts).map(_.file.directory).distinct.map(new Path(_)).forall(path =>
      LocalFile.of(path, path.getFileSystem(plan.source.conf)).isDefined)
}

private final case class FilesPartition(parts: Seq[FilePart]) extends InputPartition

/**
 * Goes to the executors, which have no session: the Hadoop configuration travels with it.
 *
 * @param conf none where all files are local
 */
private final class FilesReaderFactory(
    task: TaskPlan,
    conf: Option[Broadcast[SerializableConfiguration]])
    extends PartitionReaderFactory {

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new FilesReader(
      partition.asInstanceOf[FilesPartition].parts,
      task,
      conf.fold(LocalFile.conf)(_.value.value),
      isRemote = conf.isDefined)
}

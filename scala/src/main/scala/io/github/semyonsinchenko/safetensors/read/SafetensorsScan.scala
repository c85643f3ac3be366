package io.github.semyonsinchenko.safetensors.read

import java.util.OptionalLong

import org.apache.hadoop.fs.Path
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.expressions.{
  Expression,
  Expressions,
  NamedReference,
  SortDirection,
  SortOrder
}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.partitioning.{
  KeyGroupedPartitioning,
  Partitioning,
  UnknownPartitioning
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

import io.github.semyonsinchenko.safetensors.common.{ColumnReference, Metrics, TaskMetric}
import io.github.semyonsinchenko.safetensors.read.rows.{FilePart, FilesSkippedMetric, ReadMetrics}
import io.github.semyonsinchenko.safetensors.storage.LocalFile

/**
 * A planned read. Spark reuses caches and exchanges of equal scans.
 *
 * @param planned the plan before runtime filters
 */
private[read] final case class SafetensorsScan(planned: ScanPlan)
    extends Scan
    with SupportsReportStatistics
    with SupportsReportPartitioning
    with SupportsReportOrdering
    with SupportsRuntimeV2Filtering {

  // The plan of the latest run, which Spark shows in its UI.
  @volatile private var plan = planned

  // Plans that run concurrently may share this scan. Spark calls `filter` and `toBatch` in the same thread.
  private val narrowed = new ThreadLocal[ScanPlan]

  override def filterAttributes(): Array[NamedReference] = planned.filterable.toArray

  override def filter(predicates: Array[Predicate]): Unit = {
    val filtered = planned.narrowed(predicates.toVector)
    narrowed.set(filtered)
    plan = filtered
  }

  private def files = plan.source.snapshot.files

  override def readSchema(): StructType = plan.required

  // Without join filters, which may have millions of keys: Spark's event log repeats this text.
  override def description(): String = {
    val filters = planned.pushed.map { case (predicate, _) => SafetensorsScan.shortened(predicate.toString) }
    s"safetensors ${plan.parts.size} of ${files.size} files, layout ${plan.source.layout.name}, " +
      s"columns ${plan.required.fieldNames.mkString("[", ", ", "]")}, filters ${filters.mkString("[", ", ", "]")}"
  }

  override def estimateStatistics(): Statistics = new Statistics {
    override def sizeInBytes(): OptionalLong = OptionalLong.of(plan.bytes)
    override def numRows(): OptionalLong     = plan.rowCount.fold(OptionalLong.empty)(OptionalLong.of)
  }

  override def outputPartitioning(): Partitioning = (planned.buckets, planned.keyColumn) match {
    case (Some(count), Some(key)) =>
      val bucket = Expressions.bucket(count, ColumnReference.quoted(key))
      new KeyGroupedPartitioning(Array[Expression](bucket), planned.bucketPartitions.size)
    case _ => new UnknownPartitioning(0)
  }

  override def outputOrdering(): Array[SortOrder] = planned.keyColumn
    .filter(_ => planned.buckets.isDefined && planned.bucketPartitions.forall(_.isSorted))
    .map(key => Expressions.sort(ColumnReference.of(key), SortDirection.ASCENDING)).toArray

  override def supportedCustomMetrics(): Array[CustomMetric] =
    if (Metrics.areLoadable) ReadMetrics.all else Array.empty

  override def reportDriverMetrics(): Array[CustomTaskMetric] =
    if (Metrics.areLoadable)
      Array(TaskMetric((new FilesSkippedMetric).name, files.size.toLong - plan.parts.size))
    else Array.empty

  // Not checked when the scan is built: DESCRIBE builds it too, and a table that is only written may have any columns.
  override def toBatch: Batch = {
    planned.source.check()
    val filtered = Option(narrowed.get)
    narrowed.remove()
    SafetensorsBatch(filtered.getOrElse(planned), filtered.isDefined)
  }

  // By default Spark would plan the partitions here. EXPLAIN calls this too, and must report a wrong schema.
  override def columnarSupportMode(): Scan.ColumnarSupportMode = {
    planned.source.check()
    Scan.ColumnarSupportMode.UNSUPPORTED
  }
}

private[read] object SafetensorsScan {
  private val MaxFilterChars = 200

  private def shortened(filter: String): String =
    if (filter.length <= MaxFilterChars) filter else filter.take(MaxFilterChars) + "..."
}

/** @param isNarrowed whether a join filter narrowed the plan. Spark then uses the reader factory of another batch. */
private final case class SafetensorsBatch(plan: ScanPlan, isNarrowed: Boolean) extends Batch {

  // Broadcast because a join filter may be large.
  private lazy val task = Option.when(isNarrowed)(SparkSession.active.sparkContext.broadcast(plan.task))

  private lazy val partitions: Array[InputPartition] =
    if (plan.buckets.isDefined)
      plan.bucketPartitions.map(of => new KeyedFilesPartition(of.parts, task, of.key)).toArray
    else if (plan.source.layout.packsFiles) {
      val settings = SQLConf.get
      val packing = Packing(settings.filesMaxPartitionBytes, settings.filesOpenCostInBytes,
        SparkSession.active.sparkContext.defaultParallelism)
      // Each split reads the header, so a query that needs only headers gains nothing from splits.
      val packed = if (plan.readsData) packing.split(plan.parts) else packing.whole(plan.parts)
      packed.map(new FilesPartition(_, task)).toArray
    } else plan.parts.iterator.map(part => new FilesPartition(Seq(part), task)).toArray

  override def planInputPartitions(): Array[InputPartition] = partitions

  // Broadcast only if needed: it takes longer than all other work at the start of a read.
  override def createReaderFactory(): PartitionReaderFactory = {
    val shared = Option.unless(areLocal)(
      SparkSession.active.sparkContext.broadcast(new SerializableConfiguration(plan.source.conf)))
    new FilesReaderFactory(plan.task, shared)
  }

  private def areLocal: Boolean =
    plan.parts.iterator.map(_.file.directory).distinct.map(new Path(_)).forall(path =>
      LocalFile.of(path, path.getFileSystem(plan.source.conf)).isDefined)
}

/** @param task replaces the task plan of the factory if a join filter narrowed the plan */
private class FilesPartition(val parts: Seq[FilePart], val task: Option[Broadcast[TaskPlan]])
    extends InputPartition

/** Everything to read from one key bucket. */
private final class KeyedFilesPartition(
    parts: Seq[FilePart],
    task: Option[Broadcast[TaskPlan]],
    override val partitionKey: InternalRow)
    extends FilesPartition(parts, task)
    with HasPartitionKey

/**
 * Sent to the executors with the Hadoop configuration, because they have no session.
 *
 * @param conf none if all files are local
 */
private final class FilesReaderFactory(
    task: TaskPlan,
    conf: Option[Broadcast[SerializableConfiguration]])
    extends PartitionReaderFactory {

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] = {
    val files = partition.asInstanceOf[FilesPartition]
    new FilesReader(
      files.parts,
      files.task.fold(task)(_.value),
      conf.fold(LocalFile.conf)(_.value.value),
      isRemote = conf.isDefined)
  }
}

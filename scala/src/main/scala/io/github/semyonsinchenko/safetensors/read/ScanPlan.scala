package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

import io.github.semyonsinchenko.safetensors.common.{ColumnReference, Parallel}
import io.github.semyonsinchenko.safetensors.dataset.{DataFile, IndexedFiles, KeyBucket, Located}
import io.github.semyonsinchenko.safetensors.format.{RepeatedNames, TensorInfo}
import io.github.semyonsinchenko.safetensors.read.columns.{RowColumn, TensorField}
import io.github.semyonsinchenko.safetensors.read.conditions.{
  Condition,
  Conditions,
  Facts,
  Operand,
  Predicates
}
import io.github.semyonsinchenko.safetensors.read.rows.{FilePart, FileRows}
import io.github.semyonsinchenko.safetensors.storage.IgnoredFiles

/**
 * What a task does with each of its files. Sent to the executors.
 *
 * @param limit maximum number of rows that the query needs
 * @param names whether a header may repeat names
 * @param caseSensitive whether column and tensor names must match in case
 * @param ignored files to skip instead of failing the query
 */
private[read] final case class TaskPlan(
    rows: FileRows,
    limit: Option[Int],
    names: RepeatedNames,
    caseSensitive: Boolean,
    ignored: IgnoredFiles)

/**
 * What a query reads. Created on the driver.
 *
 * @param required the columns and struct fields that the query needs
 * @param pushed   Spark predicates and their conditions, which all rows that are read satisfy
 * @param limit    maximum number of rows that the query needs
 */
private[read] final case class ScanPlan(
    source: ReadSource,
    required: StructType,
    pushed: Vector[(Predicate, Condition)] = Vector.empty,
    limit: Option[Int] = None) {

  private val (ofFiles, ofTensors) = Conditions(pushed.map(_._2)).split

  private lazy val columns = source.columns(required)

  /** Adds predicates to the plan, as far as files and headers can decide them. */
  def narrowed(predicates: Seq[Predicate]): ScanPlan = {
    val of = new Predicates(source.operand)
    copy(pushed = pushed ++ predicates.flatMap(predicate => of.condition(predicate).map(predicate -> _)))
  }

  /** The columns for which Spark can push join filters at runtime to select files or tensors. */
  def filterable: Seq[NamedReference] =
    required.fieldNames.toSeq.filter(name =>
      source.operand(Seq(name)).exists {
        case Operand.Key | _: Operand.Partition => true
        case _                                  => false
      }).map(ColumnReference.of)

  /** The column with the tensor names, if the query needs it. */
  def keyColumn: Option[String] =
    required.fieldNames.find(name => source.operand(Seq(name)).contains(Operand.Key))

  /**
   * The number of key buckets, if Spark can use one partition per bucket. None if the files are not in buckets, the
   * query does not need keys, or Spark does not use the partitioning of sources.
   */
  lazy val buckets: Option[Int] =
    if (keyColumn.isEmpty || !SQLConf.get.v2BucketingEnabled) None
    else KeyBucket.countOf(source.snapshot.files.iterator.map(_.shard.flatMap(_.bucket)))

  /** The parts by key bucket. Only for files in buckets. */
  lazy val bucketPartitions: Vector[BucketPartition] = BucketPartition.all(parts)

  /** What each task does with its files. */
  def task: TaskPlan =
    TaskPlan(
      source.layout.rows(source.ownColumns, columns, ofTensors),
      limit,
      source.options.repeatedNames,
      SQLConf.get.caseSensitiveAnalysis,
      source.options.ignored)

  /** What to read from the files that may have matching rows, as far as known without opening them. */
  lazy val parts: Vector[FilePart] = {
    val files = source.snapshot.files.filter(file => ofFiles.hold(Facts.of(file)))
    // An index does not show whether a header repeats names.
    val mayLookUp = source.layout.hasKeys && source.options.repeatedNames == RepeatedNames.LastCounts
    if (mayLookUp && !ofTensors.isEmpty) located(files)
    else limited(files).map(FilePart(_))
  }

  /** Looks up the files in the indexes of their directories. Files without a usable index are kept. */
  private def located(files: Vector[DataFile]): Vector[FilePart] = {
    val wanted = files.iterator.map(_.path).toSet
    val found  = Parallel.map(source.snapshot.indexed)(locatedBy(_, wanted)).flatten.toMap
    files.flatMap(file => found.getOrElse(file.path, Some(Located.Somewhere)).map(FilePart(file, _)))
  }

  private def locatedBy(indexed: IndexedFiles, wanted: Set[String]): Map[String, Option[Located]] = {
    val byName = indexed.files.iterator.filter(file => wanted(file.path)).map(file => file.name -> file).toMap
    def accepts(name: String, tensor: TensorInfo) = byName.get(name).exists(ofTensors.hold(_, tensor))
    val tensors =
      if (byName.isEmpty) None else indexed.index.find(ofTensors.keys, accepts, source.conf)
    tensors.fold(Map.empty[String, Option[Located]])(at =>
      byName.map { case (name, file) => file.path -> at.get(name) })
  }

  private def limited(files: Vector[DataFile]): Vector[DataFile] = limit match {
    case Some(rows) if ofTensors.isEmpty && !source.options.ignored.any =>
      var before = 0L
      files.takeWhile { file =>
        val isOfUse = before < rows
        before += source.layout.count(file).getOrElse(0L)
        isOfUse
      }
    case _ => files
  }

  /** The row count of the parts. None if counting requires opening a file, or if a file may be skipped. */
  lazy val rowCount: Option[Long] =
    if (!ofTensors.isEmpty || source.options.ignored.any) None
    else parts.iterator.map(part => source.layout.count(part.file)).foldLeft(Option(0L))((sum, count) =>
      for (all <- sum; one <- count) yield all + one)

  /** The maximum number of bytes to read. */
  def bytes: Long = parts.iterator.map {
    case part if readsData => part.size
    case part              => part.file.shard.fold(part.file.length)(_.headerBytes)
  }.sum

  /** Whether the query needs tensor data. */
  def readsData: Boolean = columns.exists {
    case tensor: RowColumn.Tensor => tensor.fields.contains(TensorField.Data)
    case _: RowColumn.Decoded     => true
    case _                        => false
  }
}

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
 * What a task does with each of its files. Goes to the executors.
 *
 * @param limit no more rows than this are of use
 * @param names whether a header may repeat names
 * @param caseSensitive whether names of columns and tensors must agree in case
 * @param ignored files that are skipped instead of failing the query
 */
private[read] final case class TaskPlan(
    rows: FileRows,
    limit: Option[Int],
    names: RepeatedNames,
    caseSensitive: Boolean,
    ignored: IgnoredFiles)

/**
 * What a query reads. Made on the driver.
 *
 * @param required the columns that it needs, and of structs the fields
 * @param pushed   conditions that whatever is read meets, by Spark's predicates
 * @param limit    no more rows than this are of use
 */
private[read] final case class ScanPlan(
    source: ReadSource,
    required: StructType,
    pushed: Vector[(Predicate, Condition)] = Vector.empty,
    limit: Option[Int] = None) {

  private val (ofFiles, ofTensors) = Conditions(pushed.map(_._2)).split

  private lazy val columns = source.columns(required)

  /** This plan for the rows that also meet these predicates, as far as files and headers decide them. */
  def narrowed(predicates: Seq[Predicate]): ScanPlan = {
    val of = new Predicates(source.operand)
    copy(pushed = pushed ++ predicates.flatMap(predicate => of.condition(predicate).map(predicate -> _)))
  }

  /** The columns whose values, found on the other side of a join, tell which files or tensors to read. */
  def filterable: Seq[NamedReference] =
    required.fieldNames.toSeq.filter(name =>
      source.operand(Seq(name)).exists {
        case Operand.Key | _: Operand.Partition => true
        case _                                  => false
      }).map(ColumnReference.of)

  /** The column of the tensors' names, if the query needs it. */
  def keyColumn: Option[String] =
    required.fieldNames.find(name => source.operand(Seq(name)).contains(Operand.Key))

  /**
   * Of all files, in buckets of keys: one partition for each bucket is then of use to Spark. None if the files are not in
   * buckets, the query needs no keys, or Spark does not use partitions of sources.
   */
  lazy val buckets: Option[Int] =
    if (keyColumn.isEmpty || !SQLConf.get.v2BucketingEnabled) None
    else KeyBucket.countOf(source.snapshot.files.iterator.map(_.shard.flatMap(_.bucket)))

  /** What each task does with its files. */
  def task: TaskPlan =
    TaskPlan(
      source.layout.rows(source.ownColumns, columns, ofTensors),
      limit,
      source.options.repeatedNames,
      SQLConf.get.caseSensitiveAnalysis,
      source.options.ignored)

  /** What to read of the files that may have rows, as far as that is known without opening them. */
  lazy val parts: Vector[FilePart] = {
    val files = source.snapshot.files.filter(file => ofFiles.hold(Facts.of(file)))
    // An index does not tell which names a header repeats.
    val mayLookUp = source.layout == Layout.Long && source.options.repeatedNames == RepeatedNames.LastCounts
    if (mayLookUp && !ofTensors.isEmpty) located(files)
    else limited(files).map(FilePart(_))
  }

  /** By the indexes of their directories, where there are any that can tell. */
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

  /** How many rows the parts have; none where a file must be opened to tell, or may be skipped. */
  lazy val rowCount: Option[Long] =
    if (!ofTensors.isEmpty || source.options.ignored.any) None
    else parts.iterator.map(part => source.layout.count(part.file)).foldLeft(Option(0L))((sum, count) =>
      for (all <- sum; one <- count) yield all + one)

  /** How many bytes it reads, at most. */
  def bytes: Long = parts.iterator.map {
    case part if readsData => part.size
    case part              => part.file.shard.fold(part.file.length)(_.headerBytes)
  }.sum

  /** Whether it reads bytes of tensors. */
  def readsData: Boolean = columns.exists {
    case tensor: RowColumn.Tensor => tensor.fields.contains(TensorField.Data)
    case _                        => false
  }
}

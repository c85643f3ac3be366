package io.github.semyonsinchenko.safetensors.read

import scala.collection.mutable
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructField, StructType}
import org.apache.spark.util.SerializableConfiguration

import io.github.semyonsinchenko.safetensors.common.{InvalidRequestException, Parallel}
import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, DataFile, DatasetMode, Snapshot}
import io.github.semyonsinchenko.safetensors.format.{Header, TensorInfo}
import io.github.semyonsinchenko.safetensors.read.columns.{
  ColumnNames,
  DecodedTypes,
  StoredColumn,
  StoredColumns
}
import io.github.semyonsinchenko.safetensors.read.rows.ShardCheck
import io.github.semyonsinchenko.safetensors.storage.{Sources, UnreadableFileException}
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** Infers the schema of a table if the user did not provide one. */
private[safetensors] object SchemaInference {

  // Spark takes minutes to process much wider schemas.
  private val MaxColumns = 10000

  /**
   * The columns of the layout, followed by the partition columns.
   *
   * @throws InvalidRequestException if the options do not enable inference, or the schema cannot be inferred
   */
  def of(snapshot: Snapshot, options: ReadOptions, conf: Configuration): StructType = {
    if (options.decode && options.layout != Layout.Rows) throw withoutRows(options.layout)
    if (options.layout == Layout.Rows) snapshot.keyed.foreach(path => throw withoutSamples(path))
    val own = options.layout.schema.getOrElse(
      if (options.mergeSchema) merged(snapshot, options, conf)
      else if (options.inferSchema || options.decode) ofFirst(snapshot, options, conf)
      else throw new InvalidRequestException(
        "Reading safetensors needs a schema: give one with `.schema(...)`, in SQL as CREATE TABLE name (column type, ...), or set the " +
          "option `inferSchema` to `true` to take it from the header of the first file, in SQL with OPTIONS (inferSchema true), or with " +
          "OPTIONS (layout 'rows', decode true) to have the rows as they were written. The option `layout=long` needs none: a row is " +
          "a tensor then."))
    own.find(column =>
      snapshot.partitions.exists(other => SQLConf.get.resolver(other.name, column.name))).foreach(column =>
      throw new InvalidRequestException(
        s"`${column.name}` is a column of the files, and directories are named `${column.name}=...`. Set `recursiveFileLookup` to read " +
          "them without partition columns."))
    ColumnNames.check(own)
    StructType(own.fields ++ snapshot.partitions.fields)
  }

  private def withoutRows(layout: Layout) = new InvalidRequestException(
    s"The option `decode` decodes samples, but the layout is `${layout.name}`. Set the option `layout=rows`, or leave `decode` out.")

  private def withoutSamples(path: Path) = new InvalidRequestException(
    s"$path was written by key, with `name_col`, and has no samples. Read its tensors with the option `layout=long`, in SQL as " +
      s"safetensors.long.`${path.toUri.getPath}`.")

  private def ofFirst(snapshot: Snapshot, options: ReadOptions, conf: Configuration): StructType =
    if (snapshot.files.isEmpty) ofNoRows(snapshot, options)
    else refusing {
      val candidates = (firstOf(snapshot, conf) +: snapshot.files).iterator
      val (file, found) = candidates.flatMap(file => columns(file, options, conf).map(file -> _)).nextOption()
        .getOrElse(throw new InvalidRequestException("No schema can be inferred: no file can be read."))
      if (found.size > MaxColumns) tooMany(file.path)
      StructType(found)
    }

  private def ofNoRows(snapshot: Snapshot, options: ReadOptions): StructType = {
    val batches =
      snapshot.manifests.find(manifest => manifest.mode == DatasetMode.Batch && manifest.schema.nonEmpty)
    def typeOf(column: ColumnRecord) =
      StoredColumn.of(column).filter(_ => options.decode).fold[DataType](TensorStruct.dataType)(
        DecodedTypes.of)
    batches.map(manifest =>
      StructType(manifest.schema.map(column => field(column.name, typeOf(column))))).getOrElse(
      throw new InvalidRequestException(
        "The dataset has no shards, so there is no header to infer a schema from. Give a schema with `.schema(...)`."))
  }

  /** The first file in the index of its directory, or the first in the snapshot if there is no index. */
  private def firstOf(snapshot: Snapshot, conf: Configuration): DataFile = {
    val first = snapshot.files.head
    val byIndex = for {
      indexed <- snapshot.indexed.find(_.files.headOption.contains(first))
      name    <- indexed.index.firstFile(conf)
      file    <- indexed.files.find(_.name == name)
    } yield file
    byIndex.getOrElse(first)
  }

  /** A column for each tensor in any file, in order of first appearance. */
  private def merged(snapshot: Snapshot, options: ReadOptions, conf: Configuration): StructType =
    if (snapshot.files.isEmpty) ofNoRows(snapshot, options)
    else {
      val counts = mutable.LinkedHashMap.empty[StructField, Long]
      refusing(columnsOf(snapshot.files, options, conf)).foreach { case (column, times) =>
        counts(column) = counts.getOrElse(column, 0L) + times
      }
      if (counts.size > MaxColumns) tooMany("All files together")
      checkTypes(counts.keys.toSeq)
      StructType(counts.toSeq.map { case (column, times) =>
        column.copy(nullable = times < snapshot.files.size)
      })
    }

  private def checkTypes(columns: Seq[StructField]): Unit =
    columns.groupBy(_.name).values.find(_.size > 1).foreach(same =>
      throw new InvalidRequestException(
        s"No schema can be inferred: column `${same.head.name}` is ${same.map(
            _.dataType.simpleString).mkString(" in one file and ")} in " +
          "another. Give a schema with a type that fits all files, or read without `decode`."))

  /** The columns with the number of files that have them. A column may occur several times. */
  private def columnsOf(
      files: Vector[DataFile],
      options: ReadOptions,
      conf: Configuration): Seq[(StructField, Long)] =
    if (files.size <= SQLConf.get.parallelPartitionDiscoveryThreshold)
      Parallel.map(files)(file => counted(Seq(file), options, conf)).flatten
    else {
      val context = SparkSession.active.sparkContext
      val shared  = context.broadcast(new SerializableConfiguration(conf))
      context.parallelize(files, tasks(files.size, context.defaultParallelism)).mapPartitions(some =>
        counted(some.toSeq, options, shared.value.value).iterator).collect().toSeq
    }

  // Enough tasks to balance their lengths. Starting a task costs more than reading the headers of a few small files.
  private def tasks(files: Int, cores: Int): Int =
    Seq(files, cores * 8, SQLConf.get.parallelPartitionDiscoveryParallelism).min

  /** Stops at one column more than the maximum, which is enough to detect too many columns. */
  private def counted(
      files: Seq[DataFile],
      options: ReadOptions,
      conf: Configuration): Seq[(StructField, Long)] = {
    val counts = mutable.LinkedHashMap.empty[StructField, Long]
    files.iterator.takeWhile(_ => counts.size <= MaxColumns).foreach(file =>
      columns(file, options, conf).toSeq.flatten.foreach(column =>
        counts(column) = counts.getOrElse(column, 0L) + 1))
    counts.iterator.take(MaxColumns + 1).toSeq
  }

  /** The columns of the file's tensors. None if the file is ignored. */
  private def columns(file: DataFile, options: ReadOptions, conf: Configuration): Option[Seq[StructField]] =
    try {
      val header = Using.resource(Sources.open(file, conf))(Sources.header(_, options.repeatedNames))
      ShardCheck.hasListed(file, header)
      val tensors = header.tensors.filter(tensor => file.tensors.forall(_(tensor.name)))
      Some(
        if (options.layout == Layout.Rows) ofRows(file, header, tensors, options.decode)
        else tensors.map(tensor => field(tensor.name, TensorStruct.dataType)))
    } catch { case e: UnreadableFileException if options.ignored.covers(e) => None }

  /** Decoded columns are in the order in which they were written, others in the order of their bytes. */
  private def ofRows(
      file: DataFile,
      header: Header,
      tensors: Seq[TensorInfo],
      decode: Boolean): Seq[StructField] = {
    val stored = new StoredColumns(file, header)
    val own    = tensors.filterNot(tensor => stored.isOffsets(tensor.name))
    if (!decode) own.map(tensor => field(tensor.name, TensorStruct.dataType))
    else own.sortBy(tensor => stored.place(tensor.name)).map(tensor =>
      field(tensor.name, DecodedTypes.of(stored(tensor))))
  }

  private def refusing[A](reading: => A): A =
    try reading
    catch {
      case e: UnreadableFileException =>
        throw new InvalidRequestException(s"No schema can be inferred: ${e.getMessage.stripSuffix(".")}.",
          Some(e))
    }

  private def field(name: String, dataType: DataType) = StructField(name, dataType, nullable = false)

  private def tooMany(where: String) = throw new InvalidRequestException(
    s"$where has more than $MaxColumns tensors, which is the maximum number of inferred columns. Read the tensors " +
      "as rows with the option `layout=long`, or give a schema with the tensors that you need.")
}

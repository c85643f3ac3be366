package io.github.semyonsinchenko.safetensors.read

import scala.collection.mutable
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.util.SerializableConfiguration

import io.github.semyonsinchenko.safetensors.common.{InvalidRequestException, Parallel}
import io.github.semyonsinchenko.safetensors.dataset.{DataFile, DatasetMode, Snapshot}
import io.github.semyonsinchenko.safetensors.read.columns.ColumnNames
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
    if (options.layout == Layout.Rows) snapshot.keyed.foreach(path => throw withoutSamples(path))
    val own = options.layout.schema.getOrElse(
      if (options.mergeSchema) merged(snapshot, options, conf)
      else if (options.inferSchema) ofFirst(snapshot, options, conf)
      else throw new InvalidRequestException(
        "Reading safetensors needs a schema: give one with `.schema(...)`, or set the option `inferSchema` to `true` to " +
          "take it from the header of the first file. The option `layout=long` needs none: a row is a tensor then."))
    own.find(column =>
      snapshot.partitions.exists(other => SQLConf.get.resolver(other.name, column.name))).foreach(column =>
      throw new InvalidRequestException(
        s"`${column.name}` is a column of the files, and directories are named `${column.name}=...`. Set `recursiveFileLookup` to read " +
          "them without partition columns."))
    ColumnNames.check(own)
    StructType(own.fields ++ snapshot.partitions.fields)
  }

  private def withoutSamples(path: Path) = new InvalidRequestException(
    s"$path was written by key, with `name_col`, and has no samples. Read its tensors with the option `layout=long`, in SQL as " +
      s"safetensors.long.`${path.toUri.getPath}`.")

  private def ofFirst(snapshot: Snapshot, options: ReadOptions, conf: Configuration): StructType =
    if (snapshot.files.isEmpty) ofNoRows(snapshot)
    else refusing {
      val candidates = (firstOf(snapshot, conf) +: snapshot.files).iterator
      val (file, found) = candidates.flatMap(file => names(file, options, conf).map(file -> _)).nextOption()
        .getOrElse(throw new InvalidRequestException("No schema can be inferred: no file can be read."))
      if (found.size > MaxColumns) tooMany(file.path)
      schema(found.map(_ -> false))
    }

  private def ofNoRows(snapshot: Snapshot): StructType = {
    val batches =
      snapshot.manifests.find(manifest => manifest.mode == DatasetMode.Batch && manifest.schema.nonEmpty)
    schema(batches.map(_.schema.map(_.name -> false)).getOrElse(throw new InvalidRequestException(
        "The dataset has no shards, so there is no header to infer a schema from. Give a schema with `.schema(...)`.")))
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
    if (snapshot.files.isEmpty) ofNoRows(snapshot)
    else {
      val counts = mutable.LinkedHashMap.empty[String, Long]
      refusing(namesOf(snapshot.files, options, conf)).foreach { case (name, times) =>
        counts(name) = counts.getOrElse(name, 0L) + times
      }
      if (counts.size > MaxColumns) tooMany("All files together")
      schema(counts.toSeq.map { case (name, times) => name -> (times < snapshot.files.size) })
    }

  /** Tensor names with the number of files that have them. A name may occur several times. */
  private def namesOf(
      files: Vector[DataFile],
      options: ReadOptions,
      conf: Configuration): Seq[(String, Long)] =
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

  /** Stops at one name more than the maximum, which is enough to detect too many columns. */
  private def counted(
      files: Seq[DataFile],
      options: ReadOptions,
      conf: Configuration): Seq[(String, Long)] = {
    val counts = mutable.LinkedHashMap.empty[String, Long]
    files.iterator.takeWhile(_ => counts.size <= MaxColumns).foreach(file =>
      names(file, options, conf).toSeq.flatten.foreach(name => counts(name) = counts.getOrElse(name, 0L) + 1))
    counts.iterator.take(MaxColumns + 1).toSeq
  }

  /** The names of the file's tensors. None if the file is ignored. */
  private def names(file: DataFile, options: ReadOptions, conf: Configuration): Option[Seq[String]] =
    try {
      val header = Using.resource(Sources.open(file, conf))(Sources.header(_, options.repeatedNames))
      ShardCheck.hasListed(file, header)
      Some(header.tensors.map(_.name).filter(name => file.tensors.forall(_(name))))
    } catch { case e: UnreadableFileException if options.ignored.covers(e) => None }

  private def refusing[A](reading: => A): A =
    try reading
    catch {
      case e: UnreadableFileException =>
        throw new InvalidRequestException(s"No schema can be inferred: ${e.getMessage.stripSuffix(".")}.",
          Some(e))
    }

  private def schema(columns: Seq[(String, Boolean)]): StructType =
    StructType(columns.map { case (name, nullable) => StructField(name, TensorStruct.dataType, nullable) })

  private def tooMany(where: String) = throw new InvalidRequestException(
    s"$where has more than $MaxColumns tensors, which is the maximum number of inferred columns. Read the tensors " +
      "as rows with the option `layout=long`, or give a schema with the tensors that you need.")
}

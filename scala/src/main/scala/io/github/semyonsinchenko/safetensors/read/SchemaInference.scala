package io.github.semyonsinchenko.safetensors.read

import scala.collection.mutable
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.util.SerializableConfiguration

import io.github.semyonsinchenko.safetensors.dataset._
import io.github.semyonsinchenko.safetensors.format.RepeatedNames

/** The schema of a table that the user gave none for. */
private[safetensors] object SchemaInference {

  // Spark itself takes minutes over schemas that are much wider.
  private val MaxColumns = 10000

  /**
   * The layout's columns, and then those of partitions.
   *
   * @throws InvalidRequestException if the options do not say where a schema is to come from, or files have none
   */
  def of(listing: Listing, options: ReadOptions, conf: Configuration): StructType = {
    val own = options.layout.schema.getOrElse(
      if (options.mergeSchema) merged(listing.files, options.repeatedNames, conf)
      else if (options.inferSchema) ofFirst(listing, options.repeatedNames, conf)
      else throw new InvalidRequestException(
        "Reading safetensors needs a schema: give one with `.schema(...)`, or set the option `inferSchema` to `true` to " +
          "take it from the header of the first file. The option `layout=long` needs none: a row is a tensor then."))
    own.find(column => listing.partitions.exists(_.name.equalsIgnoreCase(column.name))).foreach(column =>
      throw new InvalidRequestException(
        s"`${column.name}` is a column of the files, and directories are named `${column.name}=...`. Set `recursiveFileLookup` to read " +
          "them without partition columns."))
    ColumnNames.check(own)
    StructType(own.fields ++ listing.partitions.fields)
  }

  private def ofFirst(listing: Listing, repeated: RepeatedNames, conf: Configuration): StructType = {
    def ofEmpty = listing.manifests.find(manifest =>
      manifest.mode == Manifest.BatchMode && manifest.schema.nonEmpty).map(_.schema.map(_.name)).getOrElse(
      throw new InvalidRequestException(
        "The dataset has no shards, so that there is no header to infer a schema from: give one with `.schema(...)`."))
    val found = refusing(listing.files.headOption.fold(ofEmpty)(names(_, repeated, conf)))
    if (found.size > MaxColumns) tooMany(s"${listing.files.head.path} has ${found.size}")
    schema(found.map(_ -> false))
  }

  /** A column for each tensor of any file, in the order in which they come first. */
  private def merged(files: Vector[DataFile], repeated: RepeatedNames, conf: Configuration): StructType = {
    val counts = mutable.LinkedHashMap.empty[String, Long]
    refusing(namesOf(files, repeated, conf)).foreach { case (name, times) =>
      counts(name) = counts.getOrElse(name, 0L) + times
    }
    schema(counts.toSeq.map { case (name, times) => name -> (times < files.size) })
  }

  /** The names, each with the number of files that have it; a name may come several times. */
  private def namesOf(
      files: Vector[DataFile],
      repeated: RepeatedNames,
      conf: Configuration): Seq[(String, Long)] =
    if (files.size <= SQLConf.get.parallelPartitionDiscoveryThreshold)
      Parallel.map(files)(names(_, repeated, conf)).flatten.map(_ -> 1L)
    else {
      val context = SparkSession.active.sparkContext
      val shared  = context.broadcast(new SerializableConfiguration(conf))
      val tasks   = math.min(files.size, SQLConf.get.parallelPartitionDiscoveryParallelism)
      context.parallelize(files, tasks).mapPartitions { some =>
        val counts = mutable.LinkedHashMap.empty[String, Long]
        some.foreach(names(_, repeated, shared.value.value).foreach(name =>
            counts(name) = counts.getOrElse(name, 0L) + 1))
        counts.iterator
      }.collect().toSeq
    }

  private def names(file: DataFile, repeated: RepeatedNames, conf: Configuration): Seq[String] =
    Using.resource(Sources.open(file, conf))(Sources.header(_, repeated)).tensors.map(_.name)

  private def refusing[A](reading: => A): A =
    try reading
    catch {
      case e: UnreadableFileException =>
        throw new InvalidRequestException(s"No schema can be inferred: ${e.getMessage}.", Some(e))
    }

  private def schema(columns: Seq[(String, Boolean)]): StructType = {
    if (columns.size > MaxColumns) tooMany(s"The files have ${columns.size}")
    StructType(columns.map { case (name, nullable) => StructField(name, TensorStruct.dataType, nullable) })
  }

  private def tooMany(has: String) = throw new InvalidRequestException(
    s"$has tensors; more than $MaxColumns columns are not inferred. Read them as rows with the option `layout=long`, or give a " +
      "schema with the tensors that you need.")
}

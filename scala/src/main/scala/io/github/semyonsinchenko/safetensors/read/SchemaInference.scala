package io.github.semyonsinchenko.safetensors.read

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.types.{StructField, StructType}

import io.github.semyonsinchenko.safetensors.dataset.{
  DataFile,
  InvalidRequestException,
  Sources,
  TensorStruct,
  UnreadableFileException
}
import io.github.semyonsinchenko.safetensors.format.Header

/** The schema of a dataset by the header of its first file: a column for each tensor, in the order of their bytes. */
private[safetensors] object SchemaInference {

  // Spark itself takes minutes over schemas that are much wider.
  private val MaxColumns = 10000

  def of(files: Seq[DataFile], conf: Configuration): StructType = {
    val first = files.headOption.getOrElse(throw new InvalidRequestException(
        "The dataset has no shards, so that there is no header to infer a schema from: give one with `.schema(...)`."))
    val tensors = headerOf(first, conf).tensors
    if (tensors.length > MaxColumns) throw new InvalidRequestException(
      s"${first.path} has ${tensors.length} tensors; more than $MaxColumns columns are not inferred. " +
        "Read them as rows with the option `layout=long`, or give a schema with the tensors that you need.")
    StructType(tensors.map(tensor => StructField(tensor.name, TensorStruct.dataType, nullable = false)))
  }

  private def headerOf(file: DataFile, conf: Configuration): Header =
    try Using.resource(Sources.open(file, conf))(Sources.header)
    catch {
      case e: UnreadableFileException =>
        throw new InvalidRequestException(s"No schema can be inferred: ${e.getMessage}.", Some(e))
    }
}

package io.github.semyonsinchenko.safetensors.read.columns

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.Header

/** A field of `_metadata`. */
private[read] sealed abstract class FileField(val name: String, val dataType: DataType) extends Product
    with Serializable

private[read] object FileField {

  /** A field that is known before the file is opened. */
  sealed abstract class Known(name: String, dataType: DataType) extends FileField(name, dataType) {
    def of(file: DataFile): Any
  }

  case object FilePath extends Known("file_path", StringType) {
    override def of(file: DataFile): Any = UTF8String.fromString(new Path(file.path).toUri.toString)
  }

  case object FileName extends Known("file_name", StringType) {
    override def of(file: DataFile): Any = UTF8String.fromString(file.name)
  }

  case object FileSize extends Known("file_size", LongType) {
    override def of(file: DataFile): Any = file.length
  }

  /** In microseconds, like Spark's timestamps. */
  case object FileModificationTime extends Known("file_modification_time", TimestampType) {
    override def of(file: DataFile): Any = file.modified.get * 1000
  }

  case object HeaderMetadata
      extends FileField("header", MapType(StringType, StringType, valueContainsNull = false)) {
    def of(header: Header): Any = {
      val (names, values) = header.metadata.toSeq.sortBy(_._1).unzip
      ArrayBasedMapData(texts(names), texts(values))
    }
    private def texts(of: Seq[String]): Array[Any] = of.iterator.map[Any](UTF8String.fromString).toArray
  }

  val all: Vector[FileField] = Vector(FilePath, FileName, FileSize, FileModificationTime, HeaderMetadata)

  /** The fields of the column after pruning. */
  def of(struct: DataType): Vector[FileField] =
    struct.asInstanceOf[StructType].fieldNames.toVector.map(name => all.find(_.name == name).get)
}

package io.github.semyonsinchenko.safetensors.dataset

import java.time.LocalDate

import scala.util.Try

import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
import org.apache.spark.sql.catalyst.expressions.{Cast, Literal}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The columns that directories named `key=value` make, with types as Spark's own sources find them. */
private[dataset] final case class PartitionColumns(schema: StructType) {

  /** A directory's values, as Spark keeps them. */
  def values(texts: Vector[(String, String)]): Vector[Any] =
    schema.fields.toVector.zip(texts).map { case (column, (_, text)) => PartitionColumns.value(text, column) }
}

private[dataset] object PartitionColumns {

  /** Name and value of a directory such as `day=2026-11-21`. */
  def parse(folder: String): Option[(String, String)] = folder.indexOf('=') match {
    case at if at > 0 =>
      Some(ExternalCatalogUtils.unescapePathName(folder.take(at)) ->
        ExternalCatalogUtils.unescapePathName(folder.drop(at + 1)))
    case _ => None
  }

  /**
   * @param asked the schema of the user, whose types count before those that the values look like
   * @throws InvalidRequestException if the directories do not have the same columns
   */
  def of(directories: Vector[Vector[(String, String)]], asked: StructType): PartitionColumns = {
    val names = directories.headOption.toVector.flatten.map(_._1)
    directories.find(_.map(_._1) != names).foreach(other =>
      throw new InvalidRequestException(
        s"Directories have different partition columns: ${show(names)} and ${show(other.map(_._1))}. Read them one by one, or set " +
          "`recursiveFileLookup` to read them without partition columns."))
    PartitionColumns(StructType(names.zipWithIndex.map { case (name, i) =>
    typed(name, asked).getOrElse(StructField(name, typeOf(directories.map(_(i)._2).filterNot(isNull))))
  }))
  }

  /** The column as the user's schema has it. */
  private def typed(name: String, schema: StructType): Option[StructField] = {
    val column = schema.find(field => SQLConf.get.resolver(field.name, name))
    if (column.exists(field => TensorStruct.matches(field.dataType))) throw new InvalidRequestException(
      s"Column `$name` is a tensor in the schema, but directories are named `$name=...`. Set `recursiveFileLookup` to read them " +
        "without partition columns.")
    column
  }

  private def show(names: Vector[String]) =
    if (names.isEmpty) "none" else names.map(name => s"`$name`").mkString(", ")

  private def isNull(text: String) = text == ExternalCatalogUtils.DEFAULT_PARTITION_NAME

  private def typeOf(texts: Vector[String]): DataType = {
    def all(reads: String => Any) = texts.nonEmpty && texts.forall(text => Try(reads(text)).isSuccess)
    if (!SQLConf.get.partitionColumnTypeInferenceEnabled) StringType
    else if (all(_.toInt)) IntegerType
    else if (all(_.toLong)) LongType
    else if (all(number)) DoubleType
    else if (all(LocalDate.parse(_))) DateType
    else StringType
  }

  // Java would take `1d` and `0x1p3` for numbers, and NaN.
  private def number(text: String): Double = {
    require(text.forall(c => c.isDigit || "+-.eE".contains(c)))
    text.toDouble
  }

  private def value(text: String, column: StructField): Any =
    if (isNull(text)) null
    else {
      val literal = Literal(UTF8String.fromString(text), StringType)
      val value   = Cast(literal, column.dataType, Some(SQLConf.get.sessionLocalTimeZone), false).eval()
      if (value == null) throw new InvalidRequestException(
        s"Partition column `${column.name}` is ${column.dataType.simpleString} in the schema, but a directory is named " +
          s"`${column.name}=$text`. Give the column another type, or none.")
      value
    }
}

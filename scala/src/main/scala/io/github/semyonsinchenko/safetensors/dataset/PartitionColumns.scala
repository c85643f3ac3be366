package io.github.semyonsinchenko.safetensors.dataset

import scala.util.Try
import scala.util.matching.Regex

import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
import org.apache.spark.sql.catalyst.expressions.{Cast, Literal}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** The partition columns of directories named `key=value`. Types are inferred like in Spark's file sources. */
private[dataset] final case class PartitionColumns(schema: StructType) {

  /** The values of a directory, in Spark's internal representation. */
  def values(texts: Vector[(String, String)]): Vector[Any] =
    schema.fields.toVector.zip(texts).map { case (column, (_, text)) => PartitionColumns.value(text, column) }
}

private[dataset] object PartitionColumns {

  /** The column name and value of a directory such as `day=2026-11-21`. */
  def parse(folder: String): Option[(String, String)] = folder.indexOf('=') match {
    case at if at > 0 =>
      Some(ExternalCatalogUtils.unescapePathName(folder.take(at)) ->
        ExternalCatalogUtils.unescapePathName(folder.drop(at + 1)))
    case _ => None
  }

  /**
   * @param asked the user's schema, whose types take precedence over inferred types
   * @throws InvalidRequestException if the directories do not have the same columns
   */
  def of(directories: Vector[Vector[(String, String)]], asked: StructType): PartitionColumns = {
    val names = directories.headOption.toVector.flatten.map(_._1)
    directories.find(_.map(_._1) != names).foreach(other =>
      throw new InvalidRequestException(
        s"Directories have different partition columns: ${show(names)} and ${show(other.map(_._1))}. Read them one by one, or set " +
          "`recursiveFileLookup` to read them without partition columns."))
    names.indices.find(i => names.take(i).exists(isSame(_, names(i)))).foreach(i =>
      throw new InvalidRequestException(
        s"Directories give the partition column `${names(i)}` twice, as nested directories. Set `recursiveFileLookup` " +
          "to read them without partition columns."))
    PartitionColumns(StructType(names.zipWithIndex.map { case (name, i) =>
    typed(name, asked).getOrElse(StructField(name,
      typeOf(directories.map(_(i)._2).distinct.filterNot(isNull))))
  }))
  }

  /** The column in the user's schema. */
  private def typed(name: String, schema: StructType): Option[StructField] = {
    val column = schema.find(field => isSame(field.name, name))
    if (column.exists(field => TensorStruct.matches(field.dataType))) throw new InvalidRequestException(
      s"Column `$name` is a tensor in the schema, but directories are named `$name=...`. Set `recursiveFileLookup` to read them " +
        "without partition columns.")
    column
  }

  private def isSame(one: String, other: String) = SQLConf.get.resolver(one, other)

  private def show(names: Vector[String]) =
    if (names.isEmpty) "none" else names.map(name => s"`$name`").mkString(", ")

  private def isNull(text: String) = text == ExternalCatalogUtils.DEFAULT_PARTITION_NAME

  // Java's parsers also accept `1d`, `0x1p3`, NaN and digits of other scripts.
  private val Whole  = "[+-]?[0-9]+".r
  private val Number = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?".r
  private val Day    = "[0-9]{4}-[0-9]{2}-[0-9]{2}".r
  private val Moment = s"$Day( [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?)?".r

  /** The narrowest type that represents all texts without loss. A double is chosen only if all whole numbers are ints. */
  private def typeOf(texts: Vector[String]): DataType = {
    def all(likes: Regex, to: DataType) = texts.forall(text => likes.matches(text) && reads(text, to))
    def wide = DecimalType(texts.map(_.length).max.max(20).min(DecimalType.MAX_PRECISION), 0)
    if (!SQLConf.get.partitionColumnTypeInferenceEnabled || texts.isEmpty) StringType
    else if (all(Whole, IntegerType)) IntegerType
    else if (all(Whole, LongType)) LongType
    else if (all(Whole, wide)) wide
    else if (all(Number, DoubleType) && texts.filter(Whole.matches).forall(reads(_, IntegerType))) DoubleType
    else if (all(Day, DateType)) DateType
    else if (all(Moment, SQLConf.get.timestampType)) SQLConf.get.timestampType
    else StringType
  }

  private def value(text: String, column: StructField): Any = {
    def fault(is: String) = throw new InvalidRequestException(
      s"Partition column `${column.name}` is $is in the schema, but a directory is named `${column.name}=$text`. Give the column " +
        "another type, or remove it from the schema.")
    if (!isNull(text)) cast(text, column.dataType).getOrElse(fault(column.dataType.simpleString))
    else if (column.nullable) null
    else fault("not nullable")
  }

  private def reads(text: String, as: DataType): Boolean = cast(text, as).isDefined

  // Uses ANSI mode, which does not drop fractions.
  private def cast(text: String, to: DataType): Option[Any] = {
    val literal = Literal(UTF8String.fromString(text), StringType)
    Try(Cast(literal, to, Some(SQLConf.get.sessionLocalTimeZone), true).eval()).toOption.filter(_ != null)
  }
}

package io.github.semyonsinchenko.safetensors.write.plan

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.{InvalidRequestException, OptionSpec}
import io.github.semyonsinchenko.safetensors.dataset.{ColumnKind, ColumnRecord}
import io.github.semyonsinchenko.safetensors.format.{Header, HeaderWriter}

/**
 * A write that passed all checks of its schema and options. The driver creates it and sends it to every task.
 *
 * @param schema  the schema of the rows
 * @param columns the columns that become tensors
 * @param shardBytes the target size of a shard
 */
final case class WritePlan(
    mode: WriteMode,
    schema: StructType,
    columns: Vector[ColumnPlan],
    shardBytes: Long,
    generateIndex: Boolean,
    metadata: Map[String, String],
    options: Map[String, String]) {

  /** The `__metadata__` of each shard. It names the kinds of columns, so that a shard can be understood without the manifest. */
  def shardMetadata: Map[String, String] = {
    val kinds =
      columns.collect { case column if column.kind != ColumnKind.Fixed => column.name -> column.kind.name }
    if (kinds.isEmpty) metadata else metadata + (WritePlan.ColumnKinds -> HeaderWriter.jsonOf(kinds.toMap))
  }

  /** The plan of a write whose rows are to be like those of a dataset with these columns, in their order. */
  def appendingTo(existing: Seq[ColumnRecord]): WritePlan = copy(columns = columns
    .map(column => existing.find(_.name == column.name).fold(column)(column.appendingTo))
    .sortBy(column => existing.indexWhere(_.name == column.name)))

  /** The plan of a write of batches in which these columns are ragged, unless they cannot be or the options say otherwise. */
  def keepingRagged(names: Seq[String]): WritePlan = mode match {
    case _: WriteMode.Batch if namedRagged.isEmpty =>
      val kept = columns.map(column =>
        if (names.contains(column.name) && column.canBeRagged) column.asRagged else column)
      WritePlan.checkTensors(kept, metadata)
      copy(columns = kept)
    case _ => this
  }

  /** The options for the manifest: as the user gave them, but `ragged` names all columns that are. */
  def recordedOptions: Map[String, String] = {
    val ragged = columns.filter(_.kind == ColumnKind.Ragged).map(_.name)
    if (ragged.forall(name => namedRagged.exists(_.exists(SQLConf.get.resolver(_, name))))) options
    else options + (WriteOptions.Ragged.name -> WriteOptions.textOf(ragged))
  }

  /** The columns that the option `ragged` names, if it is set. */
  private def namedRagged: Option[Seq[String]] =
    WriteOptions.Ragged.get(new CaseInsensitiveStringMap(options.asJava))

  /** The number of written columns before that of the keys. None without keys. */
  def keyPlace: Option[Int] = mode match {
    case keyed: WriteMode.KeyValue =>
      Some(columns.count(_.ordinal < schema.fieldIndex(keyed.nameColumn)))
    case _: WriteMode.Batch => None
  }

  /** How many buckets of keys the shards are in; none if they are not in buckets. */
  def buckets: Option[Int] = mode match {
    case keyed: WriteMode.KeyValue => keyed.buckets
    case _: WriteMode.Batch        => None
  }

  /** @throws InvalidRequestException if these rows cannot be put in buckets by their keys */
  def inBuckets(count: Int): WritePlan = mode match {
    case keyed: WriteMode.KeyValue =>
      val bucketed = copy(mode = keyed.copy(buckets = Some(count)))
      WritePlan.checkBuckets(bucketed, keyed, count)
      bucketed
    case _: WriteMode.Batch => this
  }
}

object WritePlan {

  private val ColumnKinds = "column_kinds"

  /** @throws InvalidRequestException if these options cannot write these columns */
  def of(options: WriteOptions, schema: StructType): WritePlan = {
    val mode  = resolve(options.mode, schema)
    val names = columnNames(options, mode, schema)
    checkNames(names, mode)
    val shapes = byColumn(WriteOptions.Shapes, options.shapes, names)
    val ragged = options.ragged.map(resolve(WriteOptions.Ragged, _, names)).toSet
    val dtypes = options.dtypes match {
      case Dtypes.ByColumn(dtypes) => byColumn(WriteOptions.TargetDtype, dtypes, names)
      case Dtypes.Single(dtype)    => names.map(_ -> dtype).toMap
    }
    val columns = names.map { name =>
      val ordinal = schema.fieldIndex(name)
      val own =
        ColumnOptions(dtypes.get(name), options.dtypes.isInstanceOf[Dtypes.ByColumn], shapes.get(name),
          ragged(name), options.rounding)
      ColumnPlan.of(schema(ordinal), ordinal, mode, own)
    }.toVector
    if (mode.isInstanceOf[WriteMode.Batch]) checkTensors(columns, options.metadata)
    val checked =
      WritePlan(mode, schema, columns, options.shardBytes, options.generateIndex, options.metadata,
        options.asGiven)
    checked.buckets.fold(checked)(checked.inBuckets)
  }

  private def checkBuckets(plan: WritePlan, keyed: WriteMode.KeyValue, count: Int): Unit = {
    def refuse(why: String) = throw new InvalidRequestException(
      s"Rows cannot be written in $count buckets of keys (`${WriteOptions.KeyBuckets.name}`): $why")
    val keys = plan.schema(keyed.nameColumn).dataType
    // The bucket of a row must be that of its tensor's name, which is what readers see.
    if (keys != StringType) refuse(
      s"the column `${keyed.nameColumn}` is ${keys.simpleString}. Cast it to string.")
    if (plan.columns.size > 1) refuse(
      s"there are several columns, ${plan.columns.map(_.name).mkString(", ")}, so that the names of the tensors are not the " +
        "keys. Write each column to a dataset of its own.")
    if (keyed.duplicates == Duplicates.LastWin) refuse(
      "`duplicatesStrategy=lastWin` keeps the last row of a key, and no row is the last once rows are sorted by key. Remove " +
        "the duplicates before the write.")
  }

  private def resolve(mode: WriteMode, schema: StructType): WriteMode = mode match {
    case batch: WriteMode.Batch => batch
    case keyed: WriteMode.KeyValue =>
      val name = find(keyed.nameColumn, schema.fieldNames.toSeq).getOrElse(throw new InvalidRequestException(
          s"Option `name_col` names `${keyed.nameColumn}`, but the columns are: ${schema.fieldNames.mkString(", ")}. Name the column " +
            s"of keys so (in SQL: AS ${keyed.nameColumn})."))
      if (!isKey(schema(name).dataType)) throw new InvalidRequestException(
        s"Option `name_col` names `$name`, which is ${schema(name).dataType.simpleString}, but keys are strings or integers. " +
          "Cast it.")
      keyed.copy(nameColumn = name)
  }

  private def isKey(dataType: DataType): Boolean = dataType match {
    case _: StringType                                 => true
    case ByteType | ShortType | IntegerType | LongType => true
    case _                                             => false
  }

  private def columnNames(options: WriteOptions, mode: WriteMode, schema: StructType): Seq[String] =
    options.columns.map(_.map(resolve(WriteOptions.Columns, _, schema))).getOrElse(mode match {
      case keyed: WriteMode.KeyValue => schema.fieldNames.toSeq.filter(_ != keyed.nameColumn)
      case _: WriteMode.Batch        => schema.fieldNames.toSeq
    })

  private def resolve(option: OptionSpec[_], name: String, schema: StructType): String =
    find(name, schema.fieldNames.toSeq).getOrElse(throw new InvalidRequestException(
        s"Option `${option.name}` names `$name`, but the columns are: ${schema.fieldNames.mkString(", ")}."))

  /** The column of that name. Without an exact match, `spark.sql.caseSensitive` decides. */
  private def find(name: String, columns: Seq[String]): Option[String] =
    columns.find(_ == name).orElse(columns.find(SQLConf.get.resolver(_, name)))

  private def checkNames(names: Seq[String], mode: WriteMode): Unit = {
    if (names.isEmpty) throw new InvalidRequestException("There is no column to write.")
    names.groupBy(_.toLowerCase).values.find(_.size > 1).foreach { same =>
      throw new InvalidRequestException(
        s"Columns ${same.map(n => s"`$n`").mkString(" and ")} differ only in case or not at all, and Spark could not tell " +
          "their tensors apart when it reads them. Rename one.")
    }
    if (mode.isInstanceOf[WriteMode.Batch] && names.contains(Header.MetadataName))
      throw new InvalidRequestException(
        s"Column `${Header.MetadataName}` would be a tensor that no reader finds: the format keeps that name. Rename it.")
  }

  /** The values of an option, keyed by the names that the columns have in the schema. */
  private def byColumn[A](
      option: OptionSpec[_],
      values: Map[String, A],
      columns: Seq[String]): Map[String, A] =
    values.map { case (name, value) => resolve(option, name, columns) -> value }

  /** Columns have the names of the schema, and names of options may differ from them in case. */
  private def resolve(option: OptionSpec[_], name: String, columns: Seq[String]): String =
    find(name, columns).getOrElse(throw new InvalidRequestException(
        s"Option `${option.name}` names `$name`, but the columns to write are: ${columns.mkString(", ")}."))

  private def checkTensors(columns: Seq[ColumnPlan], metadata: Map[String, String]): Unit = {
    for (column <- columns if column.kind.hasOffsets;
      other     <- columns if other.name.equalsIgnoreCase(ColumnKind.offsetsOf(column.name)))
      throw new InvalidRequestException(
        s"Column `${other.name}` has the name of the tensor in which the offsets of column `${column.name}` are stored, as that is " +
          s"${column.kind.name}. Rename one.")
    if (metadata.contains(WritePlan.ColumnKinds)) throw new InvalidRequestException(
      s"Option `${WriteOptions.Metadata.name}` has `${WritePlan.ColumnKinds}`, in which a shard names the kinds of its columns. " +
        "Name it otherwise.")
  }
}

package io.github.semyonsinchenko.safetensors.write.plan

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.{JsonParser, JsonProcessingException}
import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode, ObjectMapper}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.codec.Rounding
import io.github.semyonsinchenko.safetensors.common.{InvalidRequestException, OptionSpec}
import io.github.semyonsinchenko.safetensors.dataset.KeyBucket
import io.github.semyonsinchenko.safetensors.format.Dtype

/**
 * The options of a write. Each is checked on its own; [[WritePlan]] checks them against the columns.
 *
 * @param columns the columns to write; none for all columns except the one that names tensors
 * @param ragged  the columns whose rows differ in their first dimension
 * @param shapes  the shape of a sample, by column
 * @param asGiven the options as the user set them, for the manifest
 */
final case class WriteOptions(
    mode: WriteMode,
    columns: Option[Seq[String]],
    ragged: Seq[String],
    shapes: Map[String, Seq[Int]],
    dtypes: Dtypes,
    rounding: Rounding,
    shardBytes: Long,
    generateIndex: Boolean,
    metadata: Map[String, String],
    asGiven: Map[String, String])

/** The dtypes that a write asks for. */
sealed trait Dtypes extends Product with Serializable

object Dtypes {

  /** One for every column. */
  final case class Single(dtype: Dtype) extends Dtypes

  /** One per named column; other columns keep their own. */
  final case class ByColumn(dtypes: Map[String, Dtype]) extends Dtypes
}

object WriteOptions {

  val BatchSize: OptionSpec[BatchRows] = OptionSpec(
    "batch_size",
    None,
    "Rows in a shard: each column becomes one tensor, with this as its first dimension. `auto` takes as many rows as fill " +
      "`target_shard_size_mb`."
  )(parseBatchSize)

  val TailStrategy: OptionSpec[Tail] = OptionSpec(
    "tail_strategy",
    Some("write"),
    "What to do with the last rows of a task if they are too few for a batch: `write` a smaller batch, `drop` them, or " +
      "`pad` the batch with zeros, which do not count as samples."
  )(OptionSpec.oneOf(Tail.all)(_.name))

  val NameColumn: OptionSpec[String] = OptionSpec(
    "name_col",
    None,
    "The column, of strings or integers, that names the tensors of a row: each row and column becomes one tensor, for " +
      "look-ups by key. Use it instead of `batch_size`.",
    verbatim = true
  )(text => Option.when(text.nonEmpty)(text).toRight("a column's name"))

  val Separator: OptionSpec[String] = OptionSpec(
    "kv_separator",
    Some("__"),
    "With `name_col` and several columns, the text between the key and the column in " +
      "a tensor's name. Two pairs of key and column with one name are an error.",
    verbatim = true
  )(Right(_))

  val DuplicatesStrategy: OptionSpec[Duplicates] = OptionSpec(
    "duplicatesStrategy",
    Some("fail"),
    "With `name_col`, what to do with a key that occurs twice in one shard: `fail`, " +
      "or keep the last row (`lastWin`)."
  )(
    OptionSpec.oneOf(Duplicates.all)(_.name))

  val TargetShardSize: OptionSpec[Int] = OptionSpec(
    "target_shard_size_mb",
    Some("300"),
    "With `name_col` or `batch_size=auto`, the size in megabytes at which a shard closes, from 50 to 1000. " +
      "With another `batch_size`, much smaller shards cause a warning."
  )(
    _.toIntOption.filter(mb => 50 <= mb && mb <= 1000).toRight(
      "a whole number from 50, under which small files slow readers down, to 1000, above which tasks straggle"))

  val GenerateIndex: OptionSpec[Boolean] = OptionSpec(
    "generate_index",
    Some("false"),
    "Write `_tensor_index.parquet`, which has the shard, shape, dtype and position of each tensor. With `name_col`, " +
      "a key in two shards is then an error. Appends keep an existing index up to date."
  )(OptionSpec.flag)

  val KeyBuckets: OptionSpec[Int] = OptionSpec(
    "key_buckets",
    None,
    "With `name_col` of strings and one column, how many buckets to divide the keys into, from 1 to 100000. The rows are " +
      "repartitioned and sorted by key, and each shard has keys of one bucket. Two such datasets join by key without a shuffle. " +
      "Appends keep the buckets of the dataset."
  )(_.toIntOption.filter(count => 1 <= count && count <= KeyBucket.MaxBuckets).toRight(
      s"a whole number from 1 to ${KeyBucket.MaxBuckets}"))

  val Columns: OptionSpec[Seq[String]] = OptionSpec("columns", None,
    "The columns to write, separated by commas or as a JSON array. By default all except `name_col`.")(
    parseColumns)

  val Ragged: OptionSpec[Seq[String]] = OptionSpec(
    "ragged",
    None,
    "With `batch_size`, the columns of arrays, vectors or Tensor Structs whose first dimension differs by row, separated by " +
      "commas or as a JSON array. The values of all rows are in one tensor, and `{column}.offsets` says where each row begins. " +
      "Columns of strings and binary values are stored so, whether they are named or not. An append does as the dataset does, and so does an " +
      "INSERT OVERWRITE without this option."
  )(parseColumns)

  val Shapes: OptionSpec[Map[String, Seq[Int]]] = OptionSpec(
    "shapes",
    None,
    "The shape of one sample by column, as JSON: `{\"image\": [3, 224, 224], \"label\": []}`. By default an array is a " +
      "vector of its length, and a Tensor Struct has its own shape."
  )(parseShapes)

  val TargetDtype: OptionSpec[Dtypes] = OptionSpec(
    "dtype",
    None,
    "The dtype to write: one name for all columns of numbers, or a JSON object by column. By default an array takes its own: " +
      "float F32, double F64, int I32, long I64, short I16, byte I8, boolean BOOL. Strings and binary values are always U8, dates " +
      "I32, timestamps I64. An integer dtype cuts off the fraction of a float; a number that a " +
      "dtype cannot hold is an error. F8_E4M3 and F8_E5M2 take each number as PyTorch does: beyond the largest, it becomes 448 in " +
      "the one and infinite in the other."
  )(parseDtypes)

  val RoundingMode: OptionSpec[Rounding] = OptionSpec("rounding", Some("truncate"),
    "How numbers become F16 or BF16: `truncate` cuts bits off, `nearest_even` rounds as NumPy and PyTorch do.")(
    OptionSpec.oneOf(Rounding.all)(_.name))

  val Metadata: OptionSpec[Map[String, String]] = OptionSpec("metadata", Some("""{"format": "pt"}"""),
    "The `__metadata__` of every shard: a JSON object of strings.")(parseMetadata)

  val all: Seq[OptionSpec[_]] = Seq(
    BatchSize,
    TailStrategy,
    NameColumn,
    Separator,
    DuplicatesStrategy,
    TargetShardSize,
    GenerateIndex,
    KeyBuckets,
    Columns,
    Ragged,
    Shapes,
    TargetDtype,
    RoundingMode,
    Metadata
  )

  /** The names of the options that choose the mode. */
  val modes: Seq[String] = Seq(BatchSize.name, NameColumn.name)

  def of(options: CaseInsensitiveStringMap): WriteOptions = WriteOptions(
    modeOf(options),
    Columns.get(options),
    Ragged.get(options).getOrElse(Nil),
    Shapes.get(options).getOrElse(Map.empty),
    TargetDtype.get(options).getOrElse(Dtypes.ByColumn(Map.empty)),
    RoundingMode.get(options).get,
    TargetShardSize.get(options).get * 1000000L,
    GenerateIndex.get(options).get,
    Metadata.get(options).get,
    all.flatMap(spec => Option(options.get(spec.name)).map(spec.name -> _)).toMap
  )

  private def modeOf(options: CaseInsensitiveStringMap): WriteMode =
    (BatchSize.get(options), NameColumn.get(options)) match {
      case (Some(_), None) if KeyBuckets.get(options).isDefined =>
        throw new InvalidRequestException(
          "The option `key_buckets` needs `name_col`: rows of a batch have no keys. Leave it out.")
      case (None, Some(_)) if Ragged.get(options).isDefined =>
        throw new InvalidRequestException(
          "The option `ragged` is for batches. With `name_col` each row is a tensor of its own shape. Leave `ragged` out.")
      case (Some(rows), None) => WriteMode.Batch(rows, tailOf(rows, TailStrategy.get(options).get))
      case (None, Some(name)) =>
        WriteMode.KeyValue(
          name,
          Separator.get(options).get,
          DuplicatesStrategy.get(options).get,
          KeyBuckets.get(options))
      case (None, None) => throw new InvalidRequestException(
          "A safetensors write needs the option `batch_size`, the number of rows that make one shard or `auto`, or `name_col`, the " +
            "column whose values name the tensors.")
      case (Some(_), Some(_)) => throw new InvalidRequestException(
          "The options `batch_size` and `name_col` exclude each other: rows are stacked into one tensor for each column, or " +
            "each becomes a tensor of its own. Drop one.")
    }

  private def tailOf(rows: BatchRows, tail: Tail): Tail = {
    if (rows == BatchRows.Filling && tail != Tail.Write) throw new InvalidRequestException(
      s"The option `tail_strategy=${tail.name}` needs a number of rows as `batch_size`: with `auto`, the last shard of a task has " +
        "the rows that are left. Leave it out.")
    tail
  }

  private def parseBatchSize(text: String): Either[String, BatchRows] =
    if (text.equalsIgnoreCase("auto")) Right(BatchRows.Filling)
    else text.toIntOption.filter(_ > 0).map(BatchRows.Exactly(_)).toRight(
      s"a whole number from 1 to ${Int.MaxValue}, or `auto`")

  // Text after the JSON value and repeated names are errors, so that a typo is not silently ignored.
  private val mapper = new ObjectMapper()
    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
    .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION)

  /** The text of an option that names columns. */
  def textOf(columns: Seq[String]): String = mapper.writeValueAsString(columns.toArray)

  private def parseColumns(text: String): Either[String, Seq[String]] =
    if (text.startsWith("[")) json(text).filter(n => n.isArray && n.elements.asScala.forall(_.isTextual))
      .map(_.elements.asScala.map(_.asText).toVector).toRight("a JSON array of column names")
    else Some(text.split(',').map(_.trim).toVector).filter(_.forall(_.nonEmpty)).toRight(
      "column names separated by commas")

  private def parseShapes(text: String): Either[String, Map[String, Seq[Int]]] =
    fields(text)(shape).toRight("a JSON object of shapes, as in `{\"image\": [3, 224, 224], \"label\": []}`")

  private def shape(node: JsonNode): Option[Seq[Int]] =
    if (!node.isArray || !node.elements.asScala.forall(dim => dim.isInt && dim.asInt >= 0)) None
    else Some(node.elements.asScala.map(_.asInt).toVector)

  private def parseDtypes(text: String): Either[String, Dtypes] = {
    val parsed =
      if (text.startsWith("{")) fields(text)(node => Dtype.of(node.asText)).map(Dtypes.ByColumn(_))
      else Dtype.of(text).map(Dtypes.Single(_))
    parsed.toRight(
      s"one of ${Dtype.all.map(_.name).mkString(", ")}, or a JSON object with one for each column")
  }

  private def parseMetadata(text: String): Either[String, Map[String, String]] =
    fields(text)(node => Option.when(node.isTextual)(node.asText)).toRight(
      "a JSON object whose values are strings")

  /** The fields of a JSON object; none if the text is not an object or `value` refuses a field. */
  private def fields[A](text: String)(value: JsonNode => Option[A]): Option[Map[String, A]] =
    json(text).filter(_.isObject).flatMap { node =>
      val entries = node.properties.asScala.toSeq.map(entry => value(entry.getValue).map(entry.getKey -> _))
      if (entries.forall(_.isDefined)) Some(entries.flatten.toMap) else None
    }

  private def json(text: String): Option[JsonNode] =
    try Option(mapper.readTree(text))
    catch { case _: JsonProcessingException => None }
}

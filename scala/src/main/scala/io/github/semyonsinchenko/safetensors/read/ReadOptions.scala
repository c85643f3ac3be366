package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{GlobFilter, Path}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.OptionSpec
import io.github.semyonsinchenko.safetensors.dataset.ListingRules
import io.github.semyonsinchenko.safetensors.format.RepeatedNames
import io.github.semyonsinchenko.safetensors.storage.IgnoredFiles

/** The validated options of a read. */
private[safetensors] final case class ReadOptions(
    layout: Layout,
    inferSchema: Boolean,
    mergeSchema: Boolean,
    decode: Boolean,
    repeatedNames: RepeatedNames,
    listing: ListingRules) {

  def ignored: IgnoredFiles = listing.ignored
}

private[safetensors] object ReadOptions {

  val RowLayout: OptionSpec[Layout] = OptionSpec(
    "layout",
    Some("wide"),
    "What a row is. `wide`: a file, with a column for each tensor. `long`: a tensor, with the columns " +
      "`tensor_key` and `tensor`; this needs neither a schema nor `inferSchema`. `rows`: a sample, with a column " +
      "for each tensor; the first dimension of each tensor counts the samples. Use it to read the rows that were " +
      "written with `batch_size`."
  )(OptionSpec.oneOf(Layout.all)(_.name))

  val InferSchema: OptionSpec[Boolean] = OptionSpec(
    "inferSchema",
    Some("false"),
    "With the layouts `wide` and `rows`, take the schema from the header of the first file: the first one in the " +
      "index of the dataset, or the first one in the listing if there is no index. Without this option, give a " +
      "schema with `.schema(...)`."
  )(OptionSpec.flag)

  val MergeSchema: OptionSpec[Boolean] = OptionSpec(
    "mergeSchema",
    Some("false"),
    "Take the schema from the headers of all files, with a column for each tensor in any file. The column is null " +
      "if a file does not have the tensor. Use it instead of `inferSchema`."
  )(OptionSpec.flag)

  val Decode: OptionSpec[Boolean] = OptionSpec(
    "decode",
    Some("false"),
    "With `layout=rows`, infer the schema with the Spark types that were written, such as `array<float>` and `string`, in the " +
      "order of the columns that were written. For files without a manifest, with the types that have all values of their " +
      "dtypes. Without this option, a column is a struct of bytes, shape and dtype. A schema given with `.schema(...)` says " +
      "for each column what it is read as, and needs no `decode`."
  )(OptionSpec.flag)

  val PathGlobFilter: OptionSpec[String] = OptionSpec[String](
    "pathGlobFilter",
    None,
    "Read only files whose names match this pattern, such as `model-*.safetensors`."
  )(text =>
    try { new GlobFilter(text); Right(text) }
    catch { case e: java.io.IOException => Left(s"a pattern, and ${e.getMessage}") })

  val RecursiveFileLookup: OptionSpec[Boolean] = OptionSpec(
    "recursiveFileLookup",
    Some("false"),
    "Look for files in all directories below the path. Directories named `key=value` then give no columns."
  )(OptionSpec.flag)

  val BasePath: OptionSpec[Path] = OptionSpec[Path](
    "basePath",
    None,
    "Directories named `key=value` below this directory give columns. The default is the path that is read."
  )(text => Right(new Path(text)))

  val RefuseRepeatedNames: OptionSpec[Boolean] = OptionSpec(
    "refuseRepeatedNames",
    Some("false"),
    "Refuse a file in which a tensor name or a key of `__metadata__` occurs twice. The format forbids this. The " +
      "official library uses the last one, as does a read without this option."
  )(OptionSpec.flag)

  val IgnoreCorruptFiles: OptionSpec[Boolean] = OptionSpec(
    "ignoreCorruptFiles",
    None,
    "Skip the rest of a file that cannot be read, with a warning, instead of failing. The default is the value of " +
      "`spark.sql.files.ignoreCorruptFiles`."
  )(OptionSpec.flag)

  val IgnoreMissingFiles: OptionSpec[Boolean] = OptionSpec(
    "ignoreMissingFiles",
    None,
    "Skip missing files that a dataset or a checkpoint lists, and files that were deleted after the data was " +
      "loaded. The default is the value of `spark.sql.files.ignoreMissingFiles`."
  )(OptionSpec.flag)

  /** The options that decide which files are read. */
  val ofFiles: Seq[OptionSpec[_]] =
    Seq(PathGlobFilter, RecursiveFileLookup, BasePath, IgnoreCorruptFiles, IgnoreMissingFiles)

  val all: Seq[OptionSpec[_]] =
    Seq(RowLayout, InferSchema, MergeSchema, Decode) ++ ofFiles ++ Seq(RefuseRepeatedNames)

  def of(options: CaseInsensitiveStringMap, conf: Configuration): ReadOptions = ReadOptions(
    RowLayout.get(options).get,
    InferSchema.get(options).get,
    MergeSchema.get(options).get,
    Decode.get(options).get,
    if (RefuseRepeatedNames.get(options).get) RepeatedNames.Refused else RepeatedNames.LastCounts,
    ListingRules(
      PathGlobFilter.get(options),
      RecursiveFileLookup.get(options).get,
      BasePath.get(options).map(path => path.getFileSystem(conf).makeQualified(path)),
      ignored(options)
    )
  )

  private def ignored(options: CaseInsensitiveStringMap): IgnoredFiles = IgnoredFiles(
    corrupt = IgnoreCorruptFiles.get(options).getOrElse(SQLConf.get.ignoreCorruptFiles),
    missing = IgnoreMissingFiles.get(options).getOrElse(SQLConf.get.ignoreMissingFiles)
  )
}

package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.dataset.OptionSpec

/** The options of a read, checked. */
final case class ReadOptions(inferSchema: Boolean)

object ReadOptions {

  val InferSchema: OptionSpec[Boolean] = OptionSpec("inferSchema", Some("false"),
    "Take the schema from the header of the first file. Without it, give a schema with `.schema(...)`.")(
    OptionSpec.flag)

  val all: Seq[OptionSpec[_]] = Seq(InferSchema)

  def of(options: CaseInsensitiveStringMap): ReadOptions = ReadOptions(InferSchema.get(options).get)
}

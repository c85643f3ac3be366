package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.dataset.OptionSpec

/** The options of a read, checked. */
private[safetensors] final case class ReadOptions(layout: Layout, inferSchema: Boolean)

private[safetensors] object ReadOptions {

  val RowLayout: OptionSpec[Layout] = OptionSpec(
    "layout",
    Some("wide"),
    "What a row is. `wide`: a file, with a column for each tensor. `long`: a tensor, with the columns `tensor_key` and `tensor`; it " +
      "needs neither a schema nor `inferSchema`."
  )(OptionSpec.oneOf(Layout.all)(_.name))

  val InferSchema: OptionSpec[Boolean] = OptionSpec(
    "inferSchema",
    Some("false"),
    "With the layout `wide`, take the schema from the header of the first file. Without it, give a schema with `.schema(...)`."
  )(
    OptionSpec.flag)

  val all: Seq[OptionSpec[_]] = Seq(RowLayout, InferSchema)

  def of(options: CaseInsensitiveStringMap): ReadOptions =
    ReadOptions(RowLayout.get(options).get, InferSchema.get(options).get)
}

package io.github.semyonsinchenko.safetensors.write.shards

import io.github.semyonsinchenko.safetensors.write.plan.{WriteMode, WritePlan}

/**
 * Tensor names in key-value mode: key, separator and column. Two pairs of key and column can have the same name, such as `k`
 * with `x__x` and `k__x` with `x`.
 */
private[write] object TensorNames {

  val Remedy = "Rename a column, or set `kv_separator` to a text that neither keys nor columns contain"

  /** The key and column of a tensor's name. */
  def pair(name: String, separator: String, column: String): String =
    s"key `${name.dropRight(separator.length + column.length)}` of column `$column`"

  /** What to say about a name that occurs twice, or nothing if it can only be one pair. */
  def explain(name: String, plan: WritePlan): Option[String] = plan.mode match {
    case keyed: WriteMode.KeyValue =>
      val pairs = plan.columns.map(_.name).filter(column => name.endsWith(keyed.separator + column))
        .map(pair(name, keyed.separator, _))
      Option.when(pairs.size > 1)(s" The name stands for ${pairs.mkString(" or ")}. $Remedy.")
    case _: WriteMode.Batch => None
  }
}

package io.github.semyonsinchenko.safetensors.common

import org.apache.spark.sql.connector.expressions.{Expressions, NamedReference}

/** Names a column to Spark. */
object ColumnReference {

  def of(column: String): NamedReference = Expressions.column(quoted(column))

  /** The name as one part: Spark would split `a.b` at the dot. */
  def quoted(column: String): String = s"`${column.replace("`", "``")}`"
}

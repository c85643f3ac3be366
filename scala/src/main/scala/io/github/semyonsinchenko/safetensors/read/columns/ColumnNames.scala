package io.github.semyonsinchenko.safetensors.read.columns

import java.util

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException

/** Checks that names differ in more than case: otherwise Spark confuses the columns and their fields. */
private[safetensors] object ColumnNames {

  /** @throws InvalidRequestException if two names are the same to Spark with its current settings */
  def check(schema: StructType): Unit = if (!SQLConf.get.caseSensitiveAnalysis) {
    val seen = new util.HashMap[String, String]
    schema.fieldNames.foreach { name =>
      val other = seen.put(folded(name), name)
      if (other != null) throw new InvalidRequestException(
        s"The tensor names `$other` and `$name` differ only in case, so Spark treats them as the same column. Set " +
          "`spark.sql.caseSensitive` to `true`, give a schema with one of them, or read tensors as rows with the " +
          "option `layout=long`.")
    }
  }

  /** Folds case like `equalsIgnoreCase`: ß does not equal SS, but the Kelvin sign equals k. */
  private[read] def folded(name: String): String = {
    val folded = new java.lang.StringBuilder(name.length)
    name.codePoints.forEach(char =>
      folded.appendCodePoint(Character.toLowerCase(Character.toUpperCase(char))))
    folded.toString
  }
}

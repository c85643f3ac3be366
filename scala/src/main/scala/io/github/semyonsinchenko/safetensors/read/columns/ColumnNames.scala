package io.github.semyonsinchenko.safetensors.read.columns

import java.util

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException

/** Columns that Spark can tell apart: it takes names that differ only in case for one, and mixes up their fields. */
private[safetensors] object ColumnNames {

  /** @throws InvalidRequestException for a schema with names that Spark, by its settings, takes for one */
  def check(schema: StructType): Unit = if (!SQLConf.get.caseSensitiveAnalysis) {
    val seen = new util.HashMap[String, String]
    schema.fieldNames.foreach { name =>
      val other = seen.put(folded(name), name)
      if (other != null) throw new InvalidRequestException(
        s"The names of the tensors `$other` and `$name` differ in case at most, and Spark takes them for one column. Set " +
          "`spark.sql.caseSensitive` to `true`, give a schema with one of them, or read tensors as rows with the option " +
          "`layout=long`.")
    }
  }

  /** A text that is the same for names that `equalsIgnoreCase` takes for one: ß is not SS, but the Kelvin sign is a k. */
  private[read] def folded(name: String): String = {
    val folded = new java.lang.StringBuilder(name.length)
    name.codePoints.forEach(char =>
      folded.appendCodePoint(Character.toLowerCase(Character.toUpperCase(char))))
    folded.toString
  }
}

package io.github.semyonsinchenko.safetensors.index

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.parquet.filter2.compat.FilterCompat
import org.apache.parquet.filter2.predicate.{FilterApi, FilterPredicate}
import org.apache.parquet.io.api.Binary

/** Keys as a condition on the index, by which Parquet passes over row groups and pages. */
private[safetensors] object IndexFilter {
  private val column = FilterApi.binaryColumn("tensor_key")

  def of(keys: Keys): FilterCompat.Filter = FilterCompat.get(keys match {
    case Keys.In(names)      => FilterApi.in(column, names.map(Binary.fromString).asJava)
    case Keys.Prefix(prefix) => startsWith(prefix.getBytes(UTF_8))
  })

  private def startsWith(prefix: Array[Byte]): FilterPredicate = {
    val atLeast = FilterApi.gtEq(column, Binary.fromConstantByteArray(prefix))
    behind(prefix).fold[FilterPredicate](atLeast)(end =>
      FilterApi.and(atLeast, FilterApi.lt(column, Binary.fromConstantByteArray(end))))
  }

  /** The least key that is behind all those that begin with the prefix; UTF-8 has no byte 0xFF, so that adding one is enough. */
  private def behind(prefix: Array[Byte]): Option[Array[Byte]] =
    Option.when(prefix.nonEmpty) {
      val end = prefix.clone()
      end(end.length - 1) = (end.last + 1).toByte
      end
    }
}

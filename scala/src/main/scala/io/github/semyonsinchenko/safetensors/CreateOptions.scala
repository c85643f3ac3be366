package io.github.semyonsinchenko.safetensors

import java.util

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.TableCatalog._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException

/** Extracts the options of a CREATE TABLE by path, and refuses properties that such a table cannot store. */
private[safetensors] object CreateOptions {

  // Properties that Spark adds. The provider is checked separately.
  private val sparks =
    Set(PROP_PROVIDER, PROP_OWNER, PROP_EXTERNAL, PROP_IS_MANAGED_LOCATION, PROP_COLLATION, "table_type")

  def of(properties: util.Map[String, String]): CaseInsensitiveStringMap = {
    val (prefixed, others) = properties.asScala.toMap.partition(_._1.startsWith(OPTION_PREFIX))
    val options            = prefixed.map { case (name, value) => name.stripPrefix(OPTION_PREFIX) -> value }
    checkProvider(others.get(PROP_PROVIDER))
    checkLocation(others.keySet ++ options.keySet)
    // Spark adds each option a second time, without the prefix.
    checkOthers(others.keySet -- sparks -- options.keySet)
    new CaseInsensitiveStringMap(options.asJava)
  }

  private def checkOthers(names: Set[String]): Unit =
    names.headOption.foreach(name =>
      throw new InvalidRequestException(
        s"A dataset stores no comment and no table properties, but got `$name`. Pass write options with OPTIONS."))

  private def checkProvider(provider: Option[String]): Unit =
    provider.filterNot(_.equalsIgnoreCase("safetensors")).foreach { other =>
      throw new InvalidRequestException(
        s"A table of this catalog is a safetensors dataset, and cannot use `$other`. Use USING safetensors or omit it; " +
          "with a DataFrame's `saveAsTable`, use `.format(\"safetensors\")`.")
    }

  private def checkLocation(names: Set[String]): Unit =
    if (names.map(_.toLowerCase).exists(Set("path", "paths", PROP_LOCATION)))
      throw new InvalidRequestException(
        "The name of the table is its path. It takes neither LOCATION nor an option `path`.")
}

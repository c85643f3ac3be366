package io.github.semyonsinchenko.safetensors

import java.util

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException
import org.apache.spark.sql.connector.catalog.{Identifier, NamespaceChange, SupportsNamespaces}

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.read.Layout

/** The namespaces of a catalog of paths: one for each layout. */
private[safetensors] trait LayoutNamespaces extends SupportsNamespaces {

  private def layouts: Seq[String] = Layout.all.map(_.name)

  private def layoutNamed(namespace: Array[String]): Option[Layout] = namespace match {
    case Array(name) => Layout.all.find(_.name.equalsIgnoreCase(name))
    case _           => None
  }

  protected def isNamespace(namespace: Array[String]): Boolean =
    namespace.isEmpty || layoutNamed(namespace).isDefined

  /** The layout in a table's name, if any. */
  protected def layoutOf(ident: Identifier): Option[Layout] = {
    if (!isNamespace(ident.namespace)) throw new NoTableException(
      ident,
      s"`${ident.namespace.mkString(".")}` is not a layout: expected ${layouts.mkString(" or ")}, or none, as in " +
        s"$name.`path`. Put a path with dots or slashes in backquotes."
    )
    layoutNamed(ident.namespace)
  }

  override def listNamespaces(): Array[Array[String]] = layouts.map(Array(_)).toArray

  override def listNamespaces(namespace: Array[String]): Array[Array[String]] =
    if (namespace.isEmpty) listNamespaces()
    else { loadNamespaceMetadata(namespace); Array.empty }

  override def namespaceExists(namespace: Array[String]): Boolean = isNamespace(namespace)

  /** The jar's version. `DESCRIBE NAMESPACE EXTENDED` shows it, which is how Connect clients find it. */
  override def loadNamespaceMetadata(namespace: Array[String]): util.Map[String, String] = {
    if (!isNamespace(namespace)) throw new NoSuchNamespaceException(namespace)
    // Classes outside a jar have none.
    Option(getClass.getPackage.getImplementationVersion).map(version => Map("version" -> version)).getOrElse(
      Map.empty[String, String]).asJava
  }

  override def createNamespace(namespace: Array[String], metadata: util.Map[String, String]): Unit = refuse()

  override def alterNamespace(namespace: Array[String], changes: NamespaceChange*): Unit = refuse()

  override def dropNamespace(namespace: Array[String], cascade: Boolean): Boolean = refuse()

  private def refuse(): Nothing = throw new InvalidRequestException(
    s"The namespaces of the catalog `$name` are the layouts, and cannot be changed: ${layouts.mkString(", ")}.")
}

package io.github.semyonsinchenko.safetensors

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.connector.catalog.Identifier

/** A name in the catalog that is not a table. It has our message, and the condition that Spark expects for such errors. */
private[safetensors] final class NoTableException(ident: Identifier, message: String)
    extends AnalysisException(
      s"[${NoTableException.Condition}] $message",
      None,
      None,
      None,
      Some(NoTableException.Condition),
      Map("relationName" -> ident.toString),
      Array.empty)

private object NoTableException {
  val Condition = "TABLE_OR_VIEW_NOT_FOUND"
}

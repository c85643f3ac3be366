package io.github.semyonsinchenko.safetensors.write

import io.github.semyonsinchenko.safetensors.dataset.ColumnRecord

/** What is known of the columns of several parts of a dataset together. */
private[write] object SchemaRecord {

  /** By column: a dtype and a shape where all parts that know one agree. A part without rows may know neither. */
  def merge(parts: Seq[Seq[ColumnRecord]]): Seq[ColumnRecord] =
    parts.headOption.toSeq.flatten.map { first =>
      val records = parts.flatMap(_.find(_.name == first.name))
      ColumnRecord(first.name, agreed(records.flatMap(_.dtype)), agreed(records.flatMap(_.shape)))
    }

  private def agreed[A](values: Seq[A]): Option[A] = values.distinct match {
    case Seq(value) => Some(value)
    case _          => None
  }
}

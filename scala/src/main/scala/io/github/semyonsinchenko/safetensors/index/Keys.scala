package io.github.semyonsinchenko.safetensors.index

/** The names of the tensors that a query is about. */
sealed trait Keys extends Product with Serializable {
  def contain(name: String): Boolean
}

object Keys {
  final case class In(names: Set[String]) extends Keys {
    override def contain(name: String): Boolean = names(name)
  }

  final case class Prefix(prefix: String) extends Keys {
    override def contain(name: String): Boolean = name.startsWith(prefix)
  }
}

package io.github.semyonsinchenko.safetensors.common

/** What a misspelt name may have been meant to be. */
private[safetensors] object NearestName {

  /** A sentence that asks whether the nearest name is meant, after a space; empty if none is near. */
  def hint(name: String, known: Seq[String]): String =
    of(name, known).fold("")(near => s" Did you mean `$near`?")

  /** The name that differs least, if a third of the letters or less differ. */
  private def of(name: String, known: Seq[String]): Option[String] =
    known.map(other => other -> distance(other.toLowerCase, name.toLowerCase)).sortBy(_._2).headOption
      .collect { case (near, changes) if changes * 3 <= near.length => near }

  /** The Levenshtein distance. */
  private def distance(a: String, b: String): Int =
    a.foldLeft((0 to b.length).toVector) { (above, char) =>
      b.indices.scanLeft(above.head + 1) { (left, i) =>
        math.min(math.min(left, above(i + 1)) + 1, above(i) + (if (b(i) == char) 0 else 1))
      }.toVector
    }.last
}

package io.github.semyonsinchenko.safetensors.format

/** What to do with a header that repeats a tensor's name or a key of `__metadata__`. */
sealed trait RepeatedNames extends Product with Serializable

object RepeatedNames {

  /** The last one counts, as in the official library. */
  case object LastCounts extends RepeatedNames

  /** The file is refused, as the specification of the format says. */
  case object Refused extends RepeatedNames
}

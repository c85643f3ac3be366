package io.github.semyonsinchenko.safetensors.format

/** What becomes of a header in which a tensor's name or a key of `__metadata__` stands twice. */
sealed trait RepeatedNames extends Product with Serializable

object RepeatedNames {

  /** The last counts, without a word: what the official library does. */
  case object LastCounts extends RepeatedNames

  /** The file is refused, as the format's own text has it. */
  case object Refused extends RepeatedNames
}

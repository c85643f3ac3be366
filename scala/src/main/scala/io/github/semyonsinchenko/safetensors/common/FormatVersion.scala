package io.github.semyonsinchenko.safetensors.common

import org.apache.hadoop.fs.Path

/**
 * The version of a dataset's format. A minor version adds only what readers may ignore, so a reader takes all minor versions
 * of a major version that it knows. A writer refuses newer minor versions, because it would drop what they add.
 */
final case class FormatVersion(major: Int, minor: Int) {

  override def toString: String = s"$major.$minor"

  /**
   * @param known the newest version of each major version that this connector reads
   * @throws UnsupportedVersionException if this connector cannot read `file`, which has this version
   */
  def checkReadable(file: Path, known: Seq[FormatVersion]): Unit =
    if (!known.exists(_.major == major)) throw new UnsupportedVersionException(
      s"$file has format version $this, but this version of safetensors-spark reads ${known.map(v =>
          s"${v.major}.x").mkString(" and ")}. Upgrade safetensors-spark to read it.")

  /** @throws UnsupportedVersionException if this connector cannot replace `file`, which has this version */
  def checkWritable(file: Path, known: Seq[FormatVersion]): Unit = {
    checkReadable(file, known)
    if (known.exists(newest => major == newest.major && minor > newest.minor))
      throw new UnsupportedVersionException(
        s"$file has format version $this, but this version of safetensors-spark writes ${known.mkString(" and ")} and would lose " +
          "what it does not know. Upgrade safetensors-spark to write to it, or write to another directory.")
  }
}

object FormatVersion {

  /** Of an index. */
  val Index: FormatVersion = FormatVersion(1, 1)

  /** Of a manifest whose columns are all fixed. */
  val Fixed: FormatVersion = FormatVersion(1, 3)

  /** Of a manifest with other kinds of columns. */
  val Kinds: FormatVersion = FormatVersion(2, 0)

  val ofManifests: Seq[FormatVersion] = Seq(Fixed, Kinds)

  private val Text = """([0-9]{1,9})\.([0-9]{1,9})""".r

  def parse(text: String): Option[FormatVersion] = Option(text).collect {
    case Text(major, minor) => FormatVersion(major.toInt, minor.toInt)
  }
}

/** A file of a dataset that a newer version has written. */
final class UnsupportedVersionException(message: String) extends InvalidRequestException(message)

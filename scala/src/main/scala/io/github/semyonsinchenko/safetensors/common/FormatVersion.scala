package io.github.semyonsinchenko.safetensors.common

import org.apache.hadoop.fs.Path

/**
 * The version of a dataset's format. A minor version adds only what readers may ignore, so a reader takes all minor versions
 * of its major version. A writer refuses newer minor versions, because it would drop what they add.
 */
final case class FormatVersion(major: Int, minor: Int) {
  import FormatVersion.Current

  override def toString: String = s"$major.$minor"

  /** @throws UnsupportedVersionException if this connector cannot read `file`, which has this version */
  def checkReadable(file: Path): Unit =
    if (major != Current.major) throw new UnsupportedVersionException(
      s"$file has format version $this, but this version of safetensors-spark reads ${Current.major}.x. " +
        "Upgrade safetensors-spark to read it.")

  /** @throws UnsupportedVersionException if this connector cannot replace `file`, which has this version */
  def checkWritable(file: Path): Unit = {
    checkReadable(file)
    if (minor > Current.minor) throw new UnsupportedVersionException(
      s"$file has format version $this, but this version of safetensors-spark writes $Current and would lose what it does " +
        "not know. Upgrade safetensors-spark to write to it, or write to another directory.")
  }
}

object FormatVersion {

  /** What this connector writes. */
  val Current: FormatVersion = FormatVersion(1, 1)

  private val Text = """([0-9]{1,9})\.([0-9]{1,9})""".r

  def parse(text: String): Option[FormatVersion] = Option(text).collect {
    case Text(major, minor) => FormatVersion(major.toInt, minor.toInt)
  }
}

/** A file of a dataset that a newer version has written. */
final class UnsupportedVersionException(message: String) extends InvalidRequestException(message)

package io.github.semyonsinchenko.safetensors.format

import java.io.IOException

/**
 * Why a file is no safetensors file, by the names of `SafeTensorError` in huggingface/safetensors
 * `safetensors/src/tensor.rs`: what that library refuses is refused here, for the same reason.
 */
sealed abstract class Refusal extends Product with Serializable

object Refusal {

  /** The file has fewer than 8 bytes. */
  case object HeaderTooSmall extends Refusal

  /** The header's length is over 100,000,000 bytes. */
  case object HeaderTooLarge extends Refusal

  /** The header reaches past the end of the file. */
  case object InvalidHeaderLength extends Refusal

  /** The header is not UTF-8. */
  case object InvalidHeader extends Refusal

  /** The header is not JSON, or not the JSON of a header. */
  case object InvalidHeaderDeserialization extends Refusal

  /** A tensor does not begin where the one before it ends, or ends before it begins. */
  case object InvalidOffset extends Refusal

  /** A tensor's size does not fit 64 bits. */
  case object ValidationOverflow extends Refusal

  /** A tensor's elements, smaller than a byte, do not fill whole bytes. */
  case object MisalignedSlice extends Refusal

  /** A tensor's offsets do not fit its shape and dtype. */
  case object TensorInvalidInfo extends Refusal

  /** The tensors end before the file does, or after it. */
  case object MetadataIncompleteBuffer extends Refusal

  /** A name stands twice, and the reader asked for [[RepeatedNames.Refused]]. The one rule that the library has not. */
  case object RepeatedName extends Refusal
}

/** A file that is no safetensors file: which one, the rule that it breaks, and where. */
final class InvalidFileException(val file: String, val refusal: Refusal, val detail: String)
    extends IOException(
      s"$file is not a valid safetensors file: ${InvalidFileException.shortened(detail)} ($refusal)") {

  // The message tells a user all there is; Spark prints the frames of an executor's error behind it.
  override def fillInStackTrace(): Throwable = this
}

private object InvalidFileException {
  private val Shown = 500

  // Names, numbers and shapes are the file's, and may have megabytes.
  private def shortened(detail: String): String =
    if (detail.length <= 2 * Shown) detail else s"${detail.take(Shown)} ... ${detail.takeRight(Shown)}"
}

package io.github.semyonsinchenko.safetensors.format

import java.io.IOException

/**
 * Why a file is not a safetensors file. The names and rules are those of `SafeTensorError` in huggingface/safetensors
 * `safetensors/src/tensor.rs`.
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

  /** A tensor's elements are smaller than a byte and do not fill whole bytes. */
  case object MisalignedSlice extends Refusal

  /** A tensor's offsets do not match its shape and dtype. */
  case object TensorInvalidInfo extends Refusal

  /** The tensors end before or after the end of the file. */
  case object MetadataIncompleteBuffer extends Refusal

  /** A name occurs twice and the reader asked for [[RepeatedNames.Refused]]. The official library has no such rule. */
  case object RepeatedName extends Refusal
}

/** A file that is not a safetensors file. The message names the file, the broken rule and the place. */
final class InvalidFileException(val file: String, val refusal: Refusal, val detail: String)
    extends IOException(
      s"$file is not a valid safetensors file: ${InvalidFileException.shortened(detail)} ($refusal)") {

  // The message is complete. Spark would print the stack trace of an executor's error after it.
  override def fillInStackTrace(): Throwable = this
}

object InvalidFileException {
  private val Shown = 500

  /** Names, numbers and shapes come from files and may have megabytes. */
  private[safetensors] def shortened(detail: String): String =
    if (detail.length <= 2 * Shown) detail else s"${detail.take(Shown)} ... ${detail.takeRight(Shown)}"
}

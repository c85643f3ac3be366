package io.github.semyonsinchenko.safetensors.read.rows

import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, DataFile, Manifest, ShardFacts}
import io.github.semyonsinchenko.safetensors.format.Header
import io.github.semyonsinchenko.safetensors.storage.{FileFault, UnreadableFileException}

/** Checks that the header of a shard matches the manifest. */
private[read] object ShardCheck {

  /** @throws UnreadableFileException if it does not match */
  def apply(file: DataFile, header: Header, facts: ShardFacts): Unit = {
    def differs(what: String, has: Any, expected: Any) = throw new UnreadableFileException(
      s"${file.path}: $what is $has, but the ${Manifest.FileName} says $expected. The file is not the one that was " +
        "written. Restore it, or write the dataset again.",
      fault = FileFault.Corrupt
    )
    def tensorOf(name: String) =
      header.tensor(name).getOrElse(differs(s"tensor `$name`", "absent", "that it is there"))
    // The first offset is where the first row begins, so that there is one more than rows.
    def checkSamples(column: ColumnRecord, samples: Long) = {
      val counted = tensorOf(column.tensors.last)
      val rows    = counted.shape.headOption.getOrElse(0L) - column.tensors.size + 1
      if (rows < samples)
        differs(s"the shape of tensor `${counted.name}`", show(counted.shape), s"$samples samples")
    }
    if (header.dataStart != facts.headerBytes)
      differs("the header's end", header.dataStart, facts.headerBytes)
    facts.columns.foreach { column =>
      val what   = s"tensor `${column.name}`"
      val tensor = tensorOf(column.name)
      column.dtype.filter(_ != tensor.dtype.name).foreach(differs(s"the dtype of $what", tensor.dtype, _))
      val sample = tensor.shape.drop(1)
      // A ragged tensor without values does not always define the shape of one.
      val isKnown = !column.kind.hasOffsets || tensor.size > 0
      column.shape.filter(isKnown && _.map(_.toLong) != sample).foreach(shape =>
        differs(s"the shape of a sample of $what", show(sample), show(shape)))
      facts.samples.foreach(samples => checkSamples(column, samples))
    }
  }

  /** @throws UnreadableFileException if the file lacks a tensor that the index of its checkpoint assigns to it */
  def hasListed(file: DataFile, header: Header): Unit =
    for (names <- file.tensors; name <- names.find(header.tensor(_).isEmpty))
      throw new UnreadableFileException(
        s"${file.path} has no tensor `$name`, but the index of its checkpoint lists it. Correct the index, or pass " +
          "the safetensors files as the paths.",
        fault = FileFault.Corrupt
      )

  private def show(shape: Seq[Any]): String = shape.mkString("[", ", ", "]")
}

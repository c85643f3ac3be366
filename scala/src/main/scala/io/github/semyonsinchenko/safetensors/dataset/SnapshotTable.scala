package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.fs.Path

/** A table whose scans are of one snapshot. */
trait SnapshotTable {

  /**
   * Has the table read a new snapshot when the next is needed, if it is of files that were written.
   *
   * @param written the directory of a dataset that has changed
   * @return whether it is
   */
  def renew(written: Path): Boolean
}

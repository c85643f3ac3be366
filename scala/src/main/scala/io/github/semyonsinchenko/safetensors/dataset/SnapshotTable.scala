package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.fs.Path

/** A table whose scans read one snapshot. */
trait SnapshotTable {

  /**
   * Makes the table read a new snapshot on next use, if its snapshot includes the changed directory.
   *
   * @param written the directory of a dataset that has changed
   * @return whether the snapshot includes the directory
   */
  def renew(written: Path): Boolean
}

package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.fs.Path

/** The snapshot of tables that are equal. */
private[safetensors] final class SharedSnapshot(private var loaded: Option[Snapshot]) {

  def get(load: => Snapshot): Snapshot = synchronized {
    if (loaded.isEmpty) loaded = Some(load)
    loaded.get
  }

  def covers(directory: Path): Boolean = synchronized(loaded.exists(_.covers(directory)))

  /** The next `get` loads it again. */
  def drop(): Unit = synchronized { loaded = None }
}

/** A table whose scans read one snapshot. */
trait SnapshotTable {

  /** Whether files of a dataset's directory are part of the table, or may be once the dataset has changed. */
  def covers(directory: Path): Boolean

  /** Makes the table read a new snapshot on next use, together with the tables that are equal to it. */
  def renew(): Unit
}

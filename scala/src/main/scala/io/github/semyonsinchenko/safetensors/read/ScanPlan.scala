package io.github.semyonsinchenko.safetensors.read

import io.github.semyonsinchenko.safetensors.dataset.DataFile

/** What is read: rows of these files, a partition for each group. Made on the driver, handed to every task. */
private[read] final case class ScanPlan(partitions: Seq[Seq[DataFile]], rows: FileRows)

package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.storage.IgnoredFiles

/**
 * Which files to list below the paths of a read.
 *
 * @param names     a glob pattern that file names must match
 * @param recursive whether to search all directories; their names then give no partition columns
 * @param base      the directory below which `key=value` directories give partition columns; the default is each path
 * @param ignored   files of a dataset or checkpoint to skip instead of failing
 */
final case class ListingRules(
    names: Option[String] = None,
    recursive: Boolean = false,
    base: Option[Path] = None,
    ignored: IgnoredFiles = IgnoredFiles.None)

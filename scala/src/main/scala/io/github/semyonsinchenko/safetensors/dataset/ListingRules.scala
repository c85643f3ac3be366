package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.storage.IgnoredFiles

/**
 * What to list below the paths of a read.
 *
 * @param names     a glob pattern that file names must match
 * @param recursive whether all directories are searched; their names give no partition columns then
 * @param base      the directory below which `key=value` directories give partition columns; by default each path itself
 * @param ignored   files of a dataset or checkpoint that are left out instead of being an error
 */
final case class ListingRules(
    names: Option[String] = None,
    recursive: Boolean = false,
    base: Option[Path] = None,
    ignored: IgnoredFiles = IgnoredFiles.None)

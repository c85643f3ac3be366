"""Datasets of other formats, made into datasets of this one, and back to Parquet: one file for each format."""

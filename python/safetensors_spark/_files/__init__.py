"""The files of a dataset or checkpoint: where they are, what they say, and whether they agree. Needs no Spark."""

"""The commit protocol of format/dataset.md: how files become a dataset, by one writer at a time."""

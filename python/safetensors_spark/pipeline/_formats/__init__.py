"""Files of records: how each format is read, and how it is written."""

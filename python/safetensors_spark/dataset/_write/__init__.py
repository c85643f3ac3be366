"""Rows to shards."""

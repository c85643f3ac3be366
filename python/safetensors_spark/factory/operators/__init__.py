"""Operators that come with the factory."""

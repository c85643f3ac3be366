"""Side by side with what a user would pick instead: `make bench`."""

"""What the project withstands: attacks and soaks, run by `make attack` and `make soak`, and the page that tells their results."""

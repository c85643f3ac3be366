"""What the project withstands: attacks and soaks, `make attack` and `make soak`, and the page of their results."""

"""A Docker engine of the tests' own, and the images that it would pull."""

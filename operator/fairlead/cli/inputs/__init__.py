"""Inputs of commands: files, clusters and suites, and findings about them."""

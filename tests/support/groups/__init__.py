"""Interleavings of replicas that hold the bind calls of groups."""

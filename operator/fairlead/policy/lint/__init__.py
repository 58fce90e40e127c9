"""Mistakes in a policy, and effects that will surprise its owner."""

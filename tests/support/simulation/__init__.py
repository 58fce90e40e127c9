"""Clusters as files."""

"""Authorities and certificates."""

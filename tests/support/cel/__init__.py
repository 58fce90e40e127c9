"""Helpers for tests of the rule language."""

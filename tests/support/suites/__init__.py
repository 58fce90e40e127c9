"""Suites of policy tests."""

"""Unit tests of policies: suites with nodes, pods, a time, and the expected results."""

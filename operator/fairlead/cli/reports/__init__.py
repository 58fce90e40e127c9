"""Texts, data and JUnit reports that commands print; pure."""

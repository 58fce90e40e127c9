"""Decisions from desired and observed state; pure."""

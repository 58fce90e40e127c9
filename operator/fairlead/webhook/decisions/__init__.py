"""Decisions that a replica keeps: filter calls, and what came of them."""

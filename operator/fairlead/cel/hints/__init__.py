"""Diagnostics of expressions that the engine rejects, with hints on what was probably meant."""

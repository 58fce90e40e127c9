"""Schedulers to render."""

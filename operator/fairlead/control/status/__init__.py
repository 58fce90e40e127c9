"""Statuses, conditions and events of policies."""

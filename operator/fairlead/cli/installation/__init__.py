"""Reads of an installed operator: schedulers and replicas, what they serve and have measured."""

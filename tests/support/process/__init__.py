"""Replicas: as processes, and in the loop of a test."""

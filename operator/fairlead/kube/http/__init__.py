"""Requests to the API server: one attempt, and when to try again."""

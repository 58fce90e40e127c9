"""The API server of tests: who asks it, and what it was asked."""

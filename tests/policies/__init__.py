"""Policies to test with: good ones that every reader takes, bad ones that it refuses with the right words."""

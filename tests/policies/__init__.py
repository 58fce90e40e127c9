"""Policies to test with: good ones that every reader must take, and bad ones that it must refuse with the right words."""

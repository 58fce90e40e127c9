"""Policies for tests: good ones that every reader accepts, bad ones that it rejects with the right message."""

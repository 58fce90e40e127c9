"""Pods and nodes as rules see them."""

"""Helpers of tests, folder by folder as the product."""

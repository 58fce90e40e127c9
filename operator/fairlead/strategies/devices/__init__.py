"""Shares of single devices: which devices a node has, how much of each is taken, and which ones a pod gets."""

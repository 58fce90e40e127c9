"""Learned state of strategies: sums of outcomes and sets of pods, the same in whatever order they are heard."""

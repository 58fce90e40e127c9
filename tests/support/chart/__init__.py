"""The chart, rendered and installed."""

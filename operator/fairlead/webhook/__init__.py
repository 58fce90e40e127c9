"""The extender as the scheduler sees it."""

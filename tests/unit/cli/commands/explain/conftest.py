"""Fixtures of the tests of `fairlead explain`."""

from support.cli.explained import ask, here, run

__all__ = ["ask", "here", "run"]

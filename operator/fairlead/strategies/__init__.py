"""Built-in filters and scores, one module each: pure functions from facts to verdicts. `seam` says how one is made."""

from fairlead.strategies.registry import StrategyError, installed

__all__ = ["StrategyError", "installed"]

"""Built-in filters and scores, one module each: pure functions from facts to verdicts, as `contract` defines."""

from fairlead.strategies.registry import StrategyError, installed

__all__ = ["StrategyError", "installed"]

"""Built-in filters and scores, one module each: pure functions from facts to verdicts; `contract` says how."""

from fairlead.strategies.registry import StrategyError, installed

__all__ = ["StrategyError", "installed"]

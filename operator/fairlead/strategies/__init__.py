"""Strategies: filters and scores with parameters, pure functions from facts to verdicts, as `contract` defines."""

from fairlead.strategies.registry import StrategyError, installed

__all__ = ["StrategyError", "installed"]

"""Pods that come and go on nodes whose load is simulated, and how evenly it is spread."""

from support.spread.flow import Flow
from support.spread.policies import MAX_AGE_S, VARIANTS, spec
from support.spread.simulation import CORES, LIFE_S, NODES, RATE, Look, Spread, spread

__all__ = ["CORES", "LIFE_S", "MAX_AGE_S", "NODES", "RATE", "VARIANTS", "Flow", "Look", "Spread", "spec", "spread"]

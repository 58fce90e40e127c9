"""Registry of the strategies: the modules of a package that define `STRATEGY`, here those in `builtin`.

Nothing registers itself and nothing is cached, so adding a strategy means adding a file.
"""

import importlib
import pkgutil
from collections.abc import Iterable
from types import ModuleType

from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, policy_model
from fairlead.strategies.contract import Strategy


class StrategyError(Exception):
    """Invalid module of a strategy: an error of its author, never of a policy."""


def installed(package: ModuleType | None = None) -> tuple[Strategy, ...]:
    """Return the built-in strategies, or those of another package, sorted by name."""
    package = package or importlib.import_module(f"{__package__}.builtin")
    found: dict[str, tuple[Strategy, str]] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        if "STRATEGY" not in vars(module):
            continue
        strategy = module.STRATEGY
        if not isinstance(strategy, Strategy):
            raise StrategyError(f"STRATEGY of {module.__name__} must be a Strategy; it is {strategy!r}")
        if strategy.name in found:
            other = found[strategy.name][1]
            raise StrategyError(f"{other} and {module.__name__} both call their strategy {strategy.name}")
        found[strategy.name] = strategy, module.__name__
    return tuple(strategy for _, (strategy, _) in sorted(found.items()))


def installed_policy() -> type[SchedulerExtenderPolicy]:
    """Return the model of the resource with all installed strategies."""
    return policy_with(installed())


def policy_with(strategies: Iterable[Strategy]) -> type[SchedulerExtenderPolicy]:
    """Return the model of the resource with these strategies."""
    found = [*strategies]
    return policy_model(
        filters={one.name: one.filter.params for one in found if one.filter},
        scores={one.name: one.score.params for one in found if one.score},
    )

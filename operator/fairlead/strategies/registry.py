"""Registry of the strategies: what modules define as `STRATEGY`, such as those of the package `builtin`.

Nothing registers itself, so adding a strategy means adding a file.
"""

import importlib
import pkgutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, policy_model
from fairlead.strategies.contract import Strategy
from fairlead.strategies.guard import StrategyGuard


@dataclass(frozen=True, slots=True)
class LoadedStrategies:
    """Strategies of a process: the built-in ones, and custom ones with a guard around each of their functions."""

    built_in: Mapping[str, Strategy]
    custom: Mapping[str, Strategy]
    guard: StrategyGuard
    model: type[SchedulerExtenderPolicy]
    """Model of the resource with all built-in strategies as fields."""


class StrategyError(Exception):
    """Invalid module of a strategy: an error of its author, never of a policy."""


def installed(package: ModuleType | None = None) -> tuple[Strategy, ...]:
    """Return the built-in strategies, or those of another package, sorted by name."""
    package = package or importlib.import_module(f"{__package__}.builtin")
    return strategies_of(_modules_of(package))


def strategies_of(modules: Iterable[ModuleType], *, taken: Collection[str] = ()) -> tuple[Strategy, ...]:
    """Return the strategies that modules define, sorted by name; `taken` names are built-in. Raises StrategyError."""
    found: dict[str, tuple[Strategy, str]] = {}
    for module in modules:
        if "STRATEGY" not in vars(module):
            continue
        strategy, file = module.STRATEGY, str(module.__file__)
        if not isinstance(strategy, Strategy):
            raise StrategyError(f"{file}: STRATEGY must be a Strategy; it is {strategy!r}")
        if strategy.name in taken:
            raise StrategyError(f"{file}: its strategy cannot be called {strategy.name}, as a built-in one is")
        if strategy.name in found:
            other = found[strategy.name][1]
            raise StrategyError(f"{file}: its strategy cannot be called {strategy.name}, as the one of {other} is")
        found[strategy.name] = strategy, file
    return tuple(strategy for _, (strategy, _) in sorted(found.items()))


def _modules_of(package: ModuleType) -> Iterator[ModuleType]:
    for name in sorted(info.name for info in pkgutil.iter_modules(package.__path__)):
        yield importlib.import_module(f"{package.__name__}.{name}")


def installed_policy() -> type[SchedulerExtenderPolicy]:
    """Return the model of the resource with all built-in strategies, which is the one of the CRD."""
    return policy_with(installed())


def load_strategies(custom: Mapping[str, Strategy]) -> LoadedStrategies:
    """Return the installed strategies and these custom ones, with a new guard."""
    built_in, guard = installed(), StrategyGuard()
    return LoadedStrategies({one.name: one for one in built_in}, guard.guard(custom), guard, policy_with(built_in))


def policy_with(strategies: Iterable[Strategy]) -> type[SchedulerExtenderPolicy]:
    """Return the model of the resource with these strategies as fields."""
    return _model_with((*strategies,))


@lru_cache(maxsize=8)
def _model_with(strategies: tuple[Strategy, ...]) -> type[SchedulerExtenderPolicy]:
    """Return the model, which takes longer to build than a policy to check."""
    return policy_model(
        filters={one.name: one.filter.params for one in strategies if one.filter},
        scores={one.name: one.score.params for one in strategies if one.score},
    )

"""Parts of the official client that are used, without what its packages load besides.

`kubernetes`, `kubernetes.aio` and others import all of their parts in their `__init__`: watches, informers, elections,
the client that blocks, and OAuth for logins that are refused here. That is 270 modules and a tenth of a second for
every command. Here such a package stands in `sys.modules` at once and runs its `__init__` when an attribute is read
that it does not have yet, so that other users of the library see all of it.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

_LATE: Final = ("kubernetes", "kubernetes.aio", "kubernetes.config", "kubernetes.aio.utils")
"""Packages whose `__init__` only gathers their parts, each after the one that it is in."""
_UNUSED: Final[Mapping[str, Sequence[str]]] = {
    "kubernetes.client": ("ApiClient", "Configuration"),
    "oauthlib.oauth2": (),
    "requests_oauthlib": ("OAuth2Session",),
    "urllib3": (),
}
"""Modules that the loaders import and hardly use for the logins that are accepted here, with the names they take."""


class _LateModule(ModuleType):
    """Module that is run when an attribute is read that it does not have."""

    def __getattr__(self, name: str) -> object:
        spec = self.__spec__
        if type(self) is not _LateModule or spec is None or spec.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment] # from now on like any other, also while it runs
        spec.loader.exec_module(self)
        return getattr(self, name)


def _place(name: str) -> None:
    """Put a package in its place without running it, unless it is there already."""
    if name in sys.modules or (spec := find_spec(name)) is None:
        return
    module = module_from_spec(spec)
    module.__class__ = _LateModule
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)


class _StandIn(ModuleType):
    """Module in the place of another one, which is imported when an attribute is read."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import machinery asks whether it is still being imported
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def _late_callable(module: str, name: str) -> Callable[..., Any]:
    """Return what imports a module when it is called."""

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*arguments, **options)

    return call


@contextmanager
def _without_unused() -> Iterator[None]:
    """Let imports within get modules that import the real ones when they are used."""
    absent = [name for name in _UNUSED if name not in sys.modules]
    for name in absent:
        module = _StandIn(name)
        for one in _UNUSED[name]:
            setattr(module, one, _late_callable(name, one))
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


for _name in _LATE:
    _place(_name)
with _without_unused():
    from kubernetes.aio.client import ApiClient, Configuration
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.exec_provider import ExecProvider
    from kubernetes.config.incluster_config import InClusterConfigLoader
    from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

__all__ = [
    "ApiClient",
    "ConfigException",
    "ConfigNode",
    "Configuration",
    "ExecProvider",
    "InClusterConfigLoader",
    "KubeConfigLoader",
    "KubeConfigMerger",
]

"""Uses of strategies: their parameters, and the functions that compile them to a filter or a score."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from fairlead.api.devices import DeviceShare
from fairlead.api.params import Params
from fairlead.strategies.facts import PodFacts, Unknown
from fairlead.strategies.reads import Reads


@dataclass(frozen=True, kw_only=True)
class CompiledShare:
    """Compiled entry of a policy's `binding.deviceShare`."""

    entry: DeviceShare
    cards: Callable[[PodFacts], int | Unknown]
    """Returns the number of devices that a pod needs."""
    reads: Reads
    """Facts about the pod that `cards` reads."""


CompiledShares = Mapping[str, CompiledShare]
"""Compiled entries by their names."""
_P = TypeVar("_P", bound=Params)
_R = TypeVar("_R")


_Made = TypeVar("_Made", covariant=True)


CompiledTexts: TypeAlias = Mapping[str, Callable[[PodFacts], Any]]
"""Compiled expressions of pods among the parameters of a strategy, by field; each returns a value or `Unknown`."""
_NO_TEXTS: Final[CompiledTexts] = MappingProxyType({})


class _Compile(Protocol[_Made]):
    def __call__(self, params: Params, shares: CompiledShares = ..., texts: CompiledTexts = ..., /) -> _Made: ...


class Use(Generic[_R]):
    """Use of a strategy as a filter or as a score: its parameters, and the function that compiles them."""

    __slots__ = ("compile", "params")

    def __init__(self, params: type[_P], compile: Callable[[_P], _R]) -> None:  # noqa: A002  the field's word for it
        self._set(params, lambda given, _shares, _texts: compile(given))

    @classmethod
    def of_shares(cls, params: type[_P], compile: Callable[[_P, CompiledShares], _R]) -> "Use[_R]":  # noqa: A002
        """Return a use whose parameters name device shares of the policy, which the function gets, too."""
        made = cls.__new__(cls)
        made._set(params, lambda given, shares, _texts: compile(given, shares))  # noqa: SLF001
        return made

    @classmethod
    def of_texts(cls, params: type[_P], compile: Callable[[_P, CompiledTexts], _R]) -> "Use[_R]":  # noqa: A002
        """Return a use whose parameters have expressions of pods, which the function gets compiled."""
        made = cls.__new__(cls)
        made._set(params, lambda given, _shares, texts: compile(given, texts))  # noqa: SLF001
        return made

    def _set(self, params: type[_P], function: Callable[[_P, CompiledShares, CompiledTexts], _R]) -> None:
        written: object = params
        if not (isinstance(written, type) and issubclass(written, Params)):
            raise TypeError(f"the parameters of a strategy are a class of Params, not {written!r}")

        def compiled(
            raw: Params, shares: CompiledShares = MappingProxyType({}), texts: CompiledTexts = _NO_TEXTS, /
        ) -> _R:
            if not isinstance(raw, params):
                raise TypeError(f"parameters are of type {type(raw).__name__}, not {params.__name__}")
            return function(raw, shares, texts)

        self.params: type[Params] = params
        self.compile: _Compile[_R] = compiled

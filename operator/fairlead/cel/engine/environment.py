"""Environments in which expressions are checked: their variables and functions, with types."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from cel_expr_python import cel

from fairlead.cel.engine.own_functions import EXTENDED, own_functions
from fairlead.cel.engine.protobuf import pool
from fairlead.cel.syntax.ast import Type
from fairlead.cel.values.schema import PACKAGE

EXTENSIONS: Final = (
    "bindings",
    "encoders",
    "lists",
    "math",
    "optional",
    "regex",
    "sets",
    "strings",
    "two-var-comprehensions",
)

_ENVIRONMENTS: Final = 32
_NUMBERS: Final = Type("map", (Type("string"), Type("double")))
_PLACED: Final = Type(f"{PACKAGE}.PlacedPod")

ROOTS: Final[Mapping[str, Type]] = {
    "pod": Type(f"{PACKAGE}.Pod"),
    "node": Type(f"{PACKAGE}.Node"),
    "namespaceObject": Type(f"{PACKAGE}.Namespace"),
    "free": _NUMBERS,
    "requested": _NUMBERS,
    "allocatable": _NUMBERS,
    "request": _NUMBERS,
    "pods": Type("list", (_PLACED,)),
    "data": _NUMBERS,
    "now": Type("timestamp"),
    "victim": _PLACED,
}


@dataclass(frozen=True, slots=True)
class Scope:
    """Variables that the expressions of one kind of rule may name."""

    what: str
    roots: tuple[str, ...]


_OF_NODE: Final = (
    "pod",
    "node",
    "namespaceObject",
    "free",
    "requested",
    "allocatable",
    "request",
    "pods",
    "data",
    "now",
)
CONDITION: Final = Scope("a condition of match", ("pod", "namespaceObject", "now"))
CARDS: Final = Scope("the number of devices", ("pod", "namespaceObject"))
POD_TYPE: Final = Scope("the type of pods", ("pod", "namespaceObject"))
GROUP_VALUE: Final = Scope("the group", ("pod", "namespaceObject"))
GROUP_SIZE: Final = Scope("the size of a group", ("pod", "namespaceObject"))
RULE: Final = Scope("a rule", _OF_NODE)
PROTECTION: Final = Scope("a protection", (*_OF_NODE, "victim"))


@cache
def libraries() -> cel.EnvConfig:
    """Return the libraries of the engine that rules may use; a function with overloads of ours is declared apart."""
    names = "".join(f"- name: {name}\n" for name in EXTENSIONS)
    stdlib = f"stdlib:\n  exclude_functions:\n  - name: {EXTENDED}\n"
    return cel.NewEnvConfigFromYaml(f"name: fairlead\nextensions:\n{names}{stdlib}")


def environment(scope: Scope, variables: Mapping[str, Type]) -> cel.Env:
    """Return the engine's environment for a scope and the policy's variables.

    Policies with the same variables share it: it takes half a MiB, and most of the time of compiling a short policy.
    """
    return _environment(scope, tuple(sorted((name, _signature(type_)) for name, type_ in variables.items())))


@lru_cache(maxsize=_ENVIRONMENTS)
def _environment(scope: Scope, variables: tuple[tuple[str, str], ...]) -> cel.Env:
    """Return an environment, which threads may share: the engine keeps Python's lock."""
    named = {name: engine_type(ROOTS[name]) for name in scope.roots}
    named |= {f"variables.{name}": cel.Type(signature) for name, signature in variables}
    return cel.NewEnv(pool(), config=libraries(), variables=named, functions=own_functions())


def engine_type(type_: Type) -> cel.Type:
    """Return a type as the engine writes it."""
    return cel.Type(_signature(type_))


def _signature(type_: Type) -> str:
    return f"{type_.name}<{','.join(map(_signature, type_.params))}>" if type_.params else type_.name

"""Environments in which expressions are checked: their variables and functions, with types."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from cel_expr_python import cel

from fairlead.cel.engine.protobuf import pool, quantity_message, quantity_text
from fairlead.cel.functions.extensions import DECLARATIONS
from fairlead.cel.functions.quantity import canonical, from_canonical
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
RULE: Final = Scope("a rule", _OF_NODE)
PROTECTION: Final = Scope("a protection", (*_OF_NODE, "victim"))


@cache
def extensions() -> cel.EnvConfig:
    """Return the libraries of the engine that rules may use."""
    names = "".join(f"- name: {name}\n" for name in EXTENSIONS)
    return cel.NewEnvConfigFromYaml(f"name: fairlead\nextensions:\n{names}")


@cache
def own_functions() -> tuple[cel.FunctionDecl, ...]:
    """Return the declarations of the functions that are not the engine's own."""
    overloads: dict[str, list[cel.Overload]] = {}
    for one in DECLARATIONS:
        implementation = one.for_engine(
            to_message=lambda value: quantity_message(canonical(value)),
            from_message=lambda message: from_canonical(quantity_text(message)),
        )
        types = [cel.Type(name) for name in one.parameters]
        overload = cel.Overload(one.overload_id, cel.Type(one.result), types, one.is_member, implementation)
        overloads.setdefault(one.name, []).append(overload)
    return tuple(cel.FunctionDecl(name, found) for name, found in overloads.items())


def environment(scope: Scope, variables: Mapping[str, Type]) -> cel.Env:
    """Return the engine's environment for a scope and the policy's variables."""
    named = {name: engine_type(ROOTS[name]) for name in scope.roots}
    named |= {f"variables.{name}": engine_type(type_) for name, type_ in variables.items()}
    return cel.NewEnv(pool(), config=extensions(), variables=named, functions=own_functions())


def engine_type(type_: Type) -> cel.Type:
    """Return a type as the engine writes it."""
    return cel.Type(_signature(type_))


def _signature(type_: Type) -> str:
    return f"{type_.name}<{','.join(map(_signature, type_.params))}>" if type_.params else type_.name

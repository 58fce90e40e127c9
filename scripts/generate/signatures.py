"""Signatures of the functions of the rule language, as the checker has them.

The checker has no list to be read. It is asked: with an operand of each type in each place, what it makes of a call.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from cel_expr_python import cel

from fairlead.cel.engine.environment import RULE, environment
from fairlead.cel.functions.overloads import LEFT_TO_THE_ENGINE
from fairlead.cel.syntax.ast import OPTIONAL, Type
from fairlead.cel.syntax.ast_decode import decode

_DYN: Final = "variables.d"
_OPERANDS: Final = {
    "int": "1", "uint": "1u", "double": "1.0", "string": "''", "bytes": "b''", "bool": "true", "list(int)": "[1]",
    "list(double)": "[1.0]", "list(string)": "['']", "list(list)": "[[1]]", "map": "{'': 1}", "timestamp": "now",
    "duration": "duration('1s')", "quantity": "quantity('1')", "ip": "ip('::')", "cidr": "cidr('::/0')",
    "semver": "semver('1.0.0')", "optional": "optional.of(1)", "type": "int",
}  # fmt: skip
_NUMBER: Final = ("int", "uint", "double")
_MOST: Final = 4
_VARIADIC: Final = ("math.greatest", "math.least")
_NOT_THERE: Final = frozenset(name for name, why in LEFT_TO_THE_ENGINE.items() if "has no such function" in why)


class Signature(NamedTuple):
    """One way to call a function, and the overloads that this may be."""

    text: str
    overloads: frozenset[str]


def signatures(name: str) -> Iterator[Signature]:
    """All ways to call a function."""
    for is_member in (False, True):
        if is_member and "." in name:
            continue
        for count in range(3 if name in _VARIADIC else _MOST + 1):
            if (found := _signature(name, count, is_member=is_member)) is not None:
                yield found


def _signature(name: str, count: int, *, is_member: bool) -> Signature | None:
    total = count + is_member
    anything = _asked(name, [_DYN] * total, is_member=is_member)
    if anything is None:
        return None
    taken: list[list[str]] = []
    found, results = set(anything[0]), set[str]()
    for at in range(total):
        fitting = []
        for kind, operand in _OPERANDS.items():
            operands = [*[_DYN] * at, operand, *[_DYN] * (total - at - 1)]
            answer = _asked(name, operands, is_member=is_member)
            if answer is not None and answer[0] - _NOT_THERE:
                found |= answer[0]
                fitting.append(kind)
                results.add(_plain(answer[1]))
        taken.append(fitting)
    if any(not fitting for fitting in taken):
        return None
    for kind in set(_OPERANDS).intersection(*taken) if taken else ():
        alike = _asked(name, [_OPERANDS[kind]] * total, is_member=is_member)
        results |= set() if alike is None else {_plain(alike[1])}
    result = _plain(anything[1])
    if result == "any" and "optional" not in taken[0] and len(results - {"any"}):
        result = _union(sorted(results - {"any"}, key=lambda kind: [*_OPERANDS, "list"].index(kind)))
    operands = [_union(fitting) for fitting in taken]
    call = f"{operands.pop(0)}.{name}" if is_member else name
    return Signature(f"{call}({', '.join(operands)}) -> {result}", frozenset(found - _NOT_THERE))


def _union(kinds: Sequence[str]) -> str:
    if len(kinds) == len(_OPERANDS):
        return "any"
    lists = [kind for kind in kinds if kind.startswith("list")]
    merged = ["list" if kind in lists and len(lists) > 1 else kind for kind in kinds]
    if set(_NUMBER) <= set(merged):
        merged = ["number", *(kind for kind in merged if kind not in _NUMBER)]
    return "|".join(dict.fromkeys(merged))


def _plain(type_: Type) -> str:
    if type_.name == "dyn":
        return "any"
    if type_.name == OPTIONAL:
        inner = _plain(type_.params[0])
        return "optional" if inner == "any" else f"optional({inner})"
    if type_.name == "list" and type_.params[0].name == "string":
        return "list(string)"
    return type_.name.rpartition(".")[2].lower()


@cache
def _environment() -> cel.Env:
    return environment(RULE, {"d": Type("dyn")})


def _asked(name: str, operands: Sequence[str], *, is_member: bool) -> tuple[set[str], Type] | None:
    """The overloads that a call may be, and its type; None if it is refused."""
    called, given = (f"{operands[0]}.{name}", operands[1:]) if is_member else (name, operands)
    try:
        checked = decode(_environment().compile(f"{called}({', '.join(given)})").serialize())
    except RuntimeError:
        return None
    return set(checked.overloads.get(checked.root.id, ())), checked.type_of(checked.root)

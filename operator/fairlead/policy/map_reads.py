"""In which ways an expression reads an entry of a map: the map and the key, if the key is written out."""

from typing import Final

from fairlead.cel.checked import Const, Select
from fairlead.policy.terms import Term

_OPTIONAL: Final = ("_[?_]", "_?._")

Entry = tuple[Term, object]
"""The map, and the key."""


def read(term: Term) -> Entry | None:
    """What is read so that it raises where it is absent: `map['key']`, `map.key`."""
    match term.node:
        case Select(operand=holder, field=key, test_only=False):
            return _in_map(term.at(holder), key)
    found = term.args("_[_]")
    return _in_map(found[0], found[1].node.value) if found and isinstance(found[1].node, Const) else None


def read_optionally(term: Term) -> Entry | None:
    """What is read as an optional: `map[?'key']`, `map.?key`."""
    found = term.args(*_OPTIONAL)
    return (found[0], found[1].node.value) if found and isinstance(found[1].node, Const) else None


def asked_for(term: Term) -> Entry | None:
    """Of what it is asked whether it is there: `'key' in map`, `has(map.key)`, `map[?'key'].hasValue()`."""
    match term.node:
        case Select(operand=holder, field=key, test_only=True):
            return _in_map(term.at(holder), key)
    if found := term.args("hasValue"):
        return read_optionally(found[0])
    found = term.args("@in")
    return _in_map(found[1], found[0].node.value) if found and isinstance(found[0].node, Const) else None


def _in_map(holder: Term, key: object) -> Entry | None:
    return (holder, key) if holder.checked.type_of(holder.node).name == "map" else None

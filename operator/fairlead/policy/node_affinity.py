"""The nodeAffinity that says the same as a filter on node labels, where there is one.

For each part of an expression two sets of nodes are kept: those on which it is true, and those on which it is false; on
the others it raises. A set is a disjunction of terms, a term says for some labels which values they may have. These are
closed under everything that `!`, `&&`, `||` and `?:` do, so that what comes out is exact.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import yaml

from fairlead.cel.checked import Const, Ident, ListExpr, Select
from fairlead.policy.expressions import Compiled
from fairlead.policy.terms import UNKNOWN, Term, TooLargeError, term_of

_TERMS_MAX: Final = 16
_NAME: Final = ""  # in place of a label: the node's name
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_OPTIONAL: Final = ("_[?_]", "_?._")


class _NoAffinityError(Exception):
    """No nodeAffinity says this."""


@dataclass(frozen=True, slots=True)
class Values:
    """What a label may be: one of some, or any but some; and whether it may be absent."""

    absent: bool
    values: frozenset[str] = frozenset()
    others: bool = False
    """Whether it is any but these."""

    def __invert__(self) -> "Values":
        return Values(not self.absent, self.values, not self.others)

    def __and__(self, other: "Values") -> "Values":
        return ~(~self | ~other)

    def __or__(self, other: "Values") -> "Values":
        match self.others, other.others:
            case False, False:
                values = self.values | other.values
            case True, True:
                values = self.values & other.values
            case True, False:
                values = self.values - other.values
            case _:
                values = other.values - self.values
        return Values(self.absent or other.absent, values, self.others or other.others)

    @property
    def is_nothing(self) -> bool:
        """Whether no label is so."""
        return not (self.absent or self.others or self.values)

    @property
    def is_anything(self) -> bool:
        """Whether every label is so."""
        return self.absent and self.others and not self.values


_Term = Mapping[str, Values]
_Terms = tuple[_Term, ...]
_EVERY: Final[_Terms] = ({},)
_THERE: Final = Values(absent=False, others=True)


def node_affinity(compiled: Compiled, *, rejects_on_error: bool) -> list[dict[str, object]] | None:
    """The nodeSelectorTerms that select the nodes that pass; none selects no node, an empty one all. None: there are none
    that say it.
    """
    try:
        true, false = _sets(term_of(compiled))
        passing = true if rejects_on_error else _not(false)
        return [written for term in passing for written in _written(term)]
    except (TooLargeError, _NoAffinityError):
        return None


def as_yaml(terms: list[dict[str, object]]) -> str:
    """What a pod's spec would have to say."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    text: str = yaml.safe_dump({"affinity": {"nodeAffinity": required}}, sort_keys=False, allow_unicode=True)
    return text


def _sets(term: Term) -> tuple[_Terms, _Terms]:
    """The nodes on which it is true, and those on which it is false."""
    if negated := term.args("!_"):
        true, false = _sets(negated[0])
        return false, true
    if parts := term.args("_&&_", "_||_"):
        (true, false), (true2, false2) = map(_sets, parts)
        if term.function == "_&&_":
            return _and(true, true2), _or(false, false2)
        return _or(true, true2), _and(false, false2)
    if chosen := term.args("_?_:_"):
        (true, false), (yes, no), (yes2, no2) = map(_sets, chosen)
        return _or(_and(true, yes), _and(false, yes2)), _or(_and(true, no), _and(false, no2))
    value = term.constant()
    if isinstance(value, bool):
        return (_EVERY, ()) if value else ((), _EVERY)
    return _atom(term)


def _atom(term: Term) -> tuple[_Terms, _Terms]:
    if (key := _asked_for(term)) is not None:
        return _simplified([{key: _THERE}]), _simplified([{key: ~_THERE}])
    if not (sides := term.args("_==_", "_!=_", "@in")):
        raise _NoAffinityError
    what, values = sides
    if term.function != "@in" and (read := _read(what)) is None:
        what, values = values, what
    if (read := _read(what)) is None:
        raise _NoAffinityError
    key, default = read
    wanted = frozenset(_texts(values, is_list=term.function == "@in"))
    true = Values(default in wanted, wanted)
    false = ~true
    if default is None:  # a label that is absent raises
        true, false = Values(absent=False, values=wanted), Values(absent=False, values=wanted, others=True)
    sets = _simplified([{key: true}]), _simplified([{key: false}])
    return sets[::-1] if term.function == "_!=_" else sets


def _texts(term: Term, *, is_list: bool) -> Iterator[str]:
    if is_list:
        if not isinstance(term.node, ListExpr) or term.node.optional:
            raise _NoAffinityError
        terms = [term.at(element) for element in term.node.elements]
    else:
        terms = [term]
    for one in terms:
        value = one.constant()
        if value is UNKNOWN or not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise _NoAffinityError
        yield value


def _asked_for(term: Term) -> str | None:
    """The label, if it is asked whether it is there."""
    if isinstance(term.node, Select) and term.node.test_only and _is_labels(term.at(term.node.operand)):
        return _key(term.node.field)
    if (found := term.args("@in")) and isinstance(found[0].node, Const) and _is_labels(found[1]):
        return _key(found[0].node.value)
    if found := term.args("hasValue"):
        return _optional(found[0])
    return None


def _read(term: Term) -> tuple[str, str | None] | None:
    """The label that is read, and what stands in its place where it is absent; None: reading it raises."""
    match term.node:
        case Select(operand=holder, field=field, test_only=False):
            above = term.at(holder)
            if _is_labels(above):
                return _key(field), None
            return (_NAME, None) if field == "name" and _is_metadata(above) else None
    if (found := term.args("_[_]")) and isinstance(found[1].node, Const) and _is_labels(found[0]):
        return _key(found[1].node.value), None
    if (found := term.args("orValue")) and (key := _optional(found[0])) is not None:
        default = found[1].constant()
        return (key, default) if isinstance(default, str) else None
    return None


def _optional(term: Term) -> str | None:
    found = term.args(*_OPTIONAL)
    return _key(found[1].node.value) if found and isinstance(found[1].node, Const) and _is_labels(found[0]) else None


def _is_labels(term: Term) -> bool:
    node = term.node
    return isinstance(node, Select) and node.field == "labels" and not node.test_only and _is_metadata(term.at(node.operand))


def _is_metadata(term: Term) -> bool:
    node = term.node
    if not isinstance(node, Select) or node.field != "metadata" or node.test_only:
        return False
    holder = term.at(node.operand)
    return isinstance(holder.node, Ident) and holder.checked.names.get(holder.node.id) == "node"


def _key(key: object) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise _NoAffinityError
    return key


def _or(one: _Terms, other: _Terms) -> _Terms:
    return _simplified([*one, *other])


def _and(one: _Terms, other: _Terms) -> _Terms:
    return _simplified([_both(a, b) for a in one for b in other])


def _both(one: _Term, other: _Term) -> _Term:
    return {**one, **{key: one[key] & values if key in one else values for key, values in other.items()}}


def _not(terms: _Terms) -> _Terms:
    result = _EVERY
    for term in terms:
        result = _and(result, _simplified([{key: ~values} for key, values in term.items()]))
    return result


def _simplified(terms: list[_Term]) -> _Terms:
    """Fewer terms that select the same nodes."""
    left: list[_Term] = []
    for term in terms:
        here = {key: _of_name(values) if key == _NAME else values for key, values in term.items()}
        if any(values.is_nothing for values in here.values()):
            continue
        left.append({key: values for key, values in here.items() if not (values.is_anything or _is_any_name(key, values))})
    while (joined := _joined(left)) is not None:
        left = joined
    if len(left) > _TERMS_MAX:
        raise _NoAffinityError
    return tuple(left)


def _of_name(values: Values) -> Values:
    """A node has a name, always."""
    return Values(False, values.values, values.others)  # noqa: FBT003 - as everywhere: it cannot be absent


def _is_any_name(key: str, values: Values) -> bool:
    return key == _NAME and values.others and not values.values


def _joined(terms: list[_Term]) -> list[_Term] | None:
    """With one term less, if two can be one: one selects all that the other does, or they differ in one label."""
    for at, one in enumerate(terms):
        for further, other in enumerate(terms[at + 1 :], at + 1):
            rest = [term for where, term in enumerate(terms) if where not in (at, further)]
            if _covers(one, other):
                return [*rest, one]
            if _covers(other, one):
                return [*rest, other]
            differing = [key for key in {**one, **other} if one.get(key) != other.get(key)]
            if len(differing) == 1 and (key := differing[0]) in one and key in other:
                either = one[key] | other[key]
                is_any = either.is_anything or _is_any_name(key, either)
                kept = {name: values for name, values in one.items() if name != key}
                return [*rest, kept if is_any else {**kept, key: either}]
    return None


def _covers(one: _Term, other: _Term) -> bool:
    return all(key in other and other[key] | values == values for key, values in one.items())


def _written(term: _Term) -> Iterator[dict[str, object]]:
    """A term as Kubernetes writes it, or several: it cannot say that a label is absent or one of some."""
    for at, (key, values) in enumerate(term.items()):
        rest = {name: one for name, one in term.items() if name != key}
        if key == _NAME and not values.others and len(values.values) > 1:
            for name in sorted(values.values):
                yield from _written({**rest, key: Values(absent=False, values=frozenset({name}))})
            return
        if key != _NAME and values.absent and not values.others and values.values:
            yield from _written(dict(_replaced(term, at, Values(absent=False, values=values.values))))
            yield from _written(dict(_replaced(term, at, ~_THERE)))
            return
    expressions = [one for key, values in term.items() if key != _NAME for one in _requirements(key, values)]
    fields = list(_name_requirements(term[_NAME])) if _NAME in term else []
    yield ({"matchExpressions": expressions} if expressions else {}) | ({"matchFields": fields} if fields else {})


def _replaced(term: _Term, at: int, values: Values) -> Iterator[tuple[str, Values]]:
    for where, (key, there) in enumerate(term.items()):
        yield key, values if where == at else there


def _requirements(key: str, values: Values) -> Iterator[dict[str, object]]:
    if not values.others:
        yield _requirement(key, "In", values.values) if values.values else _requirement(key, "DoesNotExist")
        return
    if not values.absent:
        yield _requirement(key, "Exists")
    if values.values:
        yield _requirement(key, "NotIn", values.values)


def _name_requirements(values: Values) -> Iterator[dict[str, object]]:
    for name in sorted(values.values):
        yield _requirement("metadata.name", "NotIn" if values.others else "In", frozenset({name}))


def _requirement(key: str, operator: str, values: frozenset[str] = frozenset()) -> dict[str, object]:
    return {"key": key, "operator": operator} | ({"values": sorted(values)} if values else {})

"""The nodeAffinity that is equivalent to a filter on node labels, if there is one.

For each part of an expression there are two sets of nodes: those on which it is true, and those on which it is false;
on all others it raises an error. `label_sets` is closed under `!`, `&&`, `||` and `?:`, so the result is exact.
"""

import operator
import re
from collections.abc import Iterator
from typing import Final

from fairlead.cel.syntax.ast import Ident, ListExpr, Select
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.lint.label_sets import (
    EVERY,
    NAME,
    LabelValues,
    Requirements,
    Terms,
    TooManyTermsError,
    both,
    complement,
    either,
    simplify,
)
from fairlead.policy.lint.symbolic import (
    TURNED,
    UNKNOWN,
    Term,
    TooLargeError,
    read,
    read_optionally,
    term_of,
    tested_for,
)
from fairlead.yaml_output import to_yaml

_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_COMPARE: Final = {"_<_": operator.lt, "_<=_": operator.le, "_>_": operator.gt, "_>=_": operator.ge}
_TERMS_A_STEP: Final = 2


class _NoAffinityError(Exception):
    """No nodeAffinity is equivalent."""


_THERE: Final = LabelValues(absent=False, others=True)


def node_affinity(compiled: CompiledExpression, *, rejects_on_error: bool) -> list[dict[str, object]] | None:
    """Return the nodeSelectorTerms that select the nodes that pass; None if no terms do.

    An empty list stands for no node and `[{}]` for every node; Kubernetes itself has neither.
    """
    try:
        whole = term_of(compiled)
        bounds: list[dict[str, object]] = []
        if rejects_on_error:
            passing = EVERY
            for part in _parts(whole):
                if (bound := _bound(part)) is not None:
                    bounds.append(bound)
                else:
                    passing = both(passing, _sets(part)[0])
        else:
            passing = complement(_sets(whole)[1])
        return [_and(written, bounds) for term in passing for written in _written(term)]
    except (TooLargeError, TooManyTermsError, _NoAffinityError):
        return None


def as_yaml(terms: list[dict[str, object]]) -> str:
    """Return the part of a pod's spec with these terms, as YAML."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return to_yaml({"affinity": {"nodeAffinity": required}})


def _parts(term: Term) -> Iterator[Term]:
    """Yield the operands of a conjunction."""
    if parts := term.args("_&&_"):
        for part in parts:
            yield from _parts(part)
    else:
        yield term


def _bound(term: Term) -> dict[str, object] | None:
    """Return a requirement Gt or Lt: a label compared as a number, false if it is absent or none; None if it is not."""
    for sign, turned in ((term.function, False), (TURNED.get(term.function, ""), True)):
        if not (sides := term.args(*_COMPARE)):
            return None
        what, limit = sides[::-1] if turned else sides
        number = limit.constant()
        if not (found := what.args("int")) or not (label := _read(found[0])) or type(number) is not int:
            continue
        key, default = label
        passes_by_default = default is not None and default.isdigit() and _COMPARE[sign](int(default), number)
        bound = number + {"_>=_": -1, "_<=_": 1}.get(sign, 0)
        if key != NAME and not passes_by_default and 0 <= bound < 1 << 63:
            return {"key": key, "operator": "Gt" if ">" in sign else "Lt", "values": [str(bound)]}
    return None


def _and(term: dict[str, object], bounds: list[dict[str, object]]) -> dict[str, object]:
    """Return a term with additional requirements."""
    if not bounds:
        return term
    own = term.get("matchExpressions", [])
    return {**term, "matchExpressions": [*(own if isinstance(own, list) else ()), *bounds]}


def _sets(term: Term) -> tuple[Terms, Terms]:
    """Return the nodes on which a term is true, and those on which it is false. Raises _NoAffinityError."""
    if negated := term.args("!_"):
        true, false = _sets(negated[0])
        return false, true
    if parts := term.args("_&&_", "_||_"):
        (true, false), (true2, false2) = map(_sets, parts)
        term.steps.take((len(true) * len(true2) + len(false) * len(false2)) // _TERMS_A_STEP)
        if term.function == "_&&_":
            return both(true, true2), either(false, false2)
        return either(true, true2), both(false, false2)
    if chosen := term.args("_?_:_"):
        (true, false), (yes, no), (yes2, no2) = map(_sets, chosen)
        term.steps.take((len(true) + len(false)) * (len(yes) + len(yes2) + len(no) + len(no2)))
        return either(both(true, yes), both(false, yes2)), either(both(true, no), both(false, no2))
    value = term.constant()
    if isinstance(value, bool):
        return (EVERY, ()) if value else ((), EVERY)
    return _atom(term)


def _atom(term: Term) -> tuple[Terms, Terms]:
    if (key := _tested_for(term)) is not None:
        return simplify([{key: _THERE}]), simplify([{key: ~_THERE}])
    if not (sides := term.args("_==_", "_!=_", "@in")):
        raise _NoAffinityError
    what, values = sides
    if term.function != "@in" and _read(what) is None:
        what, values = values, what
    if (label := _read(what)) is None:
        raise _NoAffinityError
    key, default = label
    wanted = frozenset(_texts(values, is_list=term.function == "@in"))
    true = LabelValues(default in wanted, wanted)
    false = ~true
    if default is None:  # reading an absent label raises an error
        true, false = LabelValues(absent=False, values=wanted), LabelValues(absent=False, values=wanted, others=True)
    sets = simplify([{key: true}]), simplify([{key: false}])
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


def _tested_for(term: Term) -> str | None:
    """Return the label whose presence a term tests; None if it tests none."""
    found = tested_for(term)
    return _key(found[1]) if found and _is_labels(found[0]) else None


def _read(term: Term) -> tuple[str, str | None] | None:
    """Return the label that a term reads, with its default (None: an absent label raises); None if it reads none."""
    if found := read(term):
        return (_key(found[1]), None) if _is_labels(found[0]) else None
    match term.node:
        case Select(operand=holder, field="name", test_only=False) if _is_metadata(term.at(holder)):
            return NAME, None
    if (chosen := term.args("orValue")) and (found := read_optionally(chosen[0])) and _is_labels(found[0]):
        default = chosen[1].constant()
        return (_key(found[1]), default) if isinstance(default, str) else None
    return None


def _is_labels(term: Term) -> bool:
    node = term.node
    return (
        isinstance(node, Select)
        and node.field == "labels"
        and not node.test_only
        and _is_metadata(term.at(node.operand))
    )


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


def _written(term: Requirements) -> Iterator[dict[str, object]]:
    """Yield a term as Kubernetes writes it; as several where a label may be absent or have one of some values."""
    for at, (key, values) in enumerate(term.items()):
        rest = {name: one for name, one in term.items() if name != key}
        if key == NAME and not values.others and len(values.values) > 1:
            for name in sorted(values.values):
                yield from _written({**rest, key: LabelValues(absent=False, values=frozenset({name}))})
            return
        if key != NAME and values.absent and not values.others and values.values:
            yield from _written(dict(_replaced(term, at, LabelValues(absent=False, values=values.values))))
            yield from _written(dict(_replaced(term, at, ~_THERE)))
            return
    expressions = [one for key, values in term.items() if key != NAME for one in _requirements(key, values)]
    fields = list(_name_requirements(term[NAME])) if NAME in term else []
    written: dict[str, object] = {}
    if expressions:
        written["matchExpressions"] = expressions
    if fields:
        written["matchFields"] = fields
    yield written


def _replaced(term: Requirements, at: int, values: LabelValues) -> Iterator[tuple[str, LabelValues]]:
    for where, (key, there) in enumerate(term.items()):
        yield key, values if where == at else there


def _requirements(key: str, values: LabelValues) -> Iterator[dict[str, object]]:
    if not values.others:
        yield _requirement(key, "In", values.values) if values.values else _requirement(key, "DoesNotExist")
        return
    if not values.absent:
        yield _requirement(key, "Exists")
    if values.values:
        yield _requirement(key, "NotIn", values.values)


def _name_requirements(values: LabelValues) -> Iterator[dict[str, object]]:
    for name in sorted(values.values):
        yield _requirement("metadata.name", "NotIn" if values.others else "In", frozenset({name}))


def _requirement(key: str, operator: str, values: frozenset[str] = frozenset()) -> dict[str, object]:
    return {"key": key, "operator": operator} | ({"values": sorted(values)} if values else {})

"""Terms of sets of nodes as Kubernetes writes them, and as they are published: with guards on the pod."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypedDict, cast

from fairlead.policy.symbolic.label_sets import (
    ABSENT,
    ANYTHING,
    NAME,
    PRESENT,
    LabelValues,
    PodFact,
    Requirements,
    SameValue,
    Subject,
)

NodeRequirement = dict[str, object]
GuardOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class FactReading(TypedDict, total=False):
    """Fact about the pod: one of the sources, and the value if it is absent."""

    label: str
    annotation: str
    namespace: bool
    namespaceLabel: str
    resource: str
    default: str


class PublishedGuard(FactReading, total=False):
    """Condition on a fact about the pod."""

    operator: GuardOperator
    values: list[str]


class PublishedRequirement(FactReading, total=False):
    """Requirement on a label of the node; with In and NotIn it has values, or names the fact whose value it takes."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str]


class PublishedTerm(TypedDict, total=False):
    """Alternative: requirements for pods for which all guards hold; without requirements it asks for nothing."""

    when: list[PublishedGuard]
    matchExpressions: list[PublishedRequirement]


TERMS_MAX: Final = 16
REQUIREMENTS_MAX: Final = 16
VALUES_MAX: Final = 32
GUARDS_MAX: Final = 16
GUARD_VALUES_MAX: Final = 64


def with_limits(term: dict[str, object], limits: Sequence[NodeRequirement]) -> dict[str, object]:
    """Return a term with additional requirements."""
    if not limits:
        return term
    own = term.get("matchExpressions", [])
    return {**term, "matchExpressions": [*(own if isinstance(own, list) else ()), *limits]}


def written_terms(term: Requirements) -> Iterator[dict[str, object]]:
    """Yield a term as Kubernetes writes it; as several where a label may be absent or have one of some values."""
    for one in _split(term):
        expressions = [
            said for key, values in one.items() if isinstance(key, str) and key != NAME for said in _said(key, values)
        ]
        fields = list(_of_name(one[NAME])) if NAME in one else []
        written: dict[str, object] = {}
        if expressions:
            written["matchExpressions"] = expressions
        if fields:
            written["matchFields"] = fields
        yield written


def published_terms(term: Requirements, limits: Sequence[NodeRequirement]) -> Iterator[tuple[PublishedTerm, bool]]:
    """Yield a term as it is published, or as several, each with whether it keeps within the limits as it is."""
    for one in _split(term):
        said = [each for subject, values in one.items() for each in _published(subject, values)] + [*limits]
        kept = [each for each in cast("list[PublishedRequirement]", said) if len(each.get("values", ())) <= VALUES_MAX]
        guards = published_guards(one)
        kept_guards = [each for each in guards if len(each.get("values", ())) <= GUARD_VALUES_MAX]
        result: PublishedTerm = {}
        if kept_guards:
            result["when"] = kept_guards[:GUARDS_MAX]
        if kept:
            result["matchExpressions"] = kept[:REQUIREMENTS_MAX]
        is_whole = len(said) == len(result.get("matchExpressions", ())) and len(guards) == len(result.get("when", ()))
        yield result, is_whole


def published_guards(term: Requirements) -> list[PublishedGuard]:
    """Return the guards that say what a term requires of the pod."""
    return [_guard(subject, values) for subject, values in term.items() if isinstance(subject, PodFact)]


def _guard(fact: PodFact, values: LabelValues) -> PublishedGuard:
    if not values.values:
        operator = "DoesNotExist" if values.absent else "Exists"
        return cast("PublishedGuard", {**_reading(fact, None), "operator": operator})
    # An absent fact is as good as one of the values, or as another one.
    among = values.absent is not values.others
    default = min(values.values) if among else _other_than(values.values)
    reading = _reading(fact, None if fact.source == "namespace" else default)
    operator = "NotIn" if values.others else "In"
    return cast("PublishedGuard", {**reading, "operator": operator, "values": sorted(values.values)})


def _other_than(values: frozenset[str]) -> str:
    result = ""
    while result in values:
        result += "-"
    return result


def _reading(fact: PodFact, default: str | None) -> dict[str, object]:
    source: dict[str, object] = {fact.source: fact.key if fact.source != "namespace" else True}
    return source if default is None else {**source, "default": default}


def _split(term: Requirements) -> Iterator[Requirements]:
    """Yield terms that select the same nodes together, of which each can be written as requirements."""
    for at, (subject, values) in enumerate(term.items()):
        rest = {other: one for other, one in term.items() if other != subject}
        if subject == NAME and not values.others and len(values.values) > 1:
            for name in sorted(values.values):
                yield from _split({**rest, subject: LabelValues(absent=False, values=frozenset({name}))})
            return
        if isinstance(subject, str) and values.absent and not values.others and values.values:
            yield from _split(_replaced(term, at, LabelValues(absent=False, values=values.values)))
            yield from _split(_replaced(term, at, ABSENT))
            return
        if isinstance(subject, SameValue) and (fact := _unknown(subject, term)) is not None:
            known = term.get(fact, ANYTHING)
            if values.absent:
                yield from _split({**rest, fact: known & ABSENT})
            if not (present := known & PRESENT).is_nothing:
                yield from _split({**term, fact: present})
            return
    yield term


def _unknown(same: SameValue, term: Requirements) -> PodFact | None:
    """Return the fact with which a label is compared if it may be absent, and no value then stands for it."""
    if same.default is not None or same.fact.source == "namespace":
        return None
    return same.fact if term.get(same.fact, ANYTHING).absent else None


def _replaced(term: Requirements, at: int, values: LabelValues) -> Requirements:
    return {subject: values if where == at else there for where, (subject, there) in enumerate(term.items())}


def _said(key: str, values: LabelValues) -> Iterator[NodeRequirement]:
    if not values.others:
        yield _requirement(key, "In", values.values) if values.values else _requirement(key, "DoesNotExist")
        return
    if not values.absent:
        yield _requirement(key, "Exists")
    if values.values:
        yield _requirement(key, "NotIn", values.values)


def _of_name(values: LabelValues) -> Iterator[NodeRequirement]:
    for name in sorted(values.values):
        yield _requirement("metadata.name", "NotIn" if values.others else "In", frozenset({name}))


def _requirement(key: str, operator: str, values: frozenset[str] = frozenset()) -> NodeRequirement:
    return {"key": key, "operator": operator} | ({"values": sorted(values)} if values else {})


def _published(subject: Subject, values: LabelValues) -> Iterator[NodeRequirement]:
    if isinstance(subject, SameValue):
        reading = _reading(subject.fact, subject.default)
        yield {"key": subject.key, "operator": "NotIn" if values.absent else "In", **reading}
    elif isinstance(subject, str):
        yield from _said(subject, values)

"""Sets of nodes by their labels, closed under "and", "or" and "not"; they may depend on facts about a pod.

A set is a disjunction of terms. A term says for some labels which values they may have, and stands for the nodes that
satisfy all of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

TERMS_MAX: Final = 16
_JOINED_MAX: Final = 4 * TERMS_MAX
"""Terms before they are joined: that compares all with all, repeatedly."""
NAME: Final = ""
"""Stands among the labels for the node's name, which every node has."""


class TooManyTermsError(Exception):
    """A set has more terms than are of use in a nodeAffinity."""


@dataclass(frozen=True, slots=True)
class LabelValues:
    """Values that a label may have: some, or any but some; and whether it may be absent."""

    absent: bool
    values: frozenset[str] = frozenset()
    others: bool = False
    """True: any but `values`."""

    def __invert__(self) -> "LabelValues":
        return LabelValues(not self.absent, self.values, not self.others)

    def __and__(self, other: "LabelValues") -> "LabelValues":
        return ~(~self | ~other)

    def __or__(self, other: "LabelValues") -> "LabelValues":
        match self.others, other.others:
            case False, False:
                values = self.values | other.values
            case True, True:
                values = self.values & other.values
            case True, False:
                values = self.values - other.values
            case _:
                values = other.values - self.values
        return LabelValues(self.absent or other.absent, values, self.others or other.others)

    @property
    def is_nothing(self) -> bool:
        """Report whether no label satisfies this."""
        return not (self.absent or self.others or self.values)

    @property
    def is_anything(self) -> bool:
        """Report whether every label satisfies this."""
        return self.absent and self.others and not self.values


ANYTHING: Final = LabelValues(absent=True, others=True)
PRESENT: Final = LabelValues(absent=False, others=True)
ABSENT: Final = ~PRESENT
_NOTHING: Final = LabelValues(absent=False)

FactSource = Literal["label", "annotation", "namespace", "namespaceLabel", "resource"]


@dataclass(frozen=True, slots=True)
class PodFact:
    """Fact about a pod that is known when it is created: its namespace, or an entry of a map, which may be absent.

    A resource is there if the limits of a container have it.
    """

    source: FactSource
    key: str = ""


@dataclass(frozen=True, slots=True)
class SameValue:
    """Question whether a node has a label with the value of a fact about the pod: `PRESENT` is yes, `ABSENT` no."""

    key: str
    fact: PodFact
    default: str | None
    """Value that stands for an absent fact; None: no value is the same as an absent fact."""


Subject = str | PodFact | SameValue
"""What a term restricts: mostly a label of the node."""
Requirements = Mapping[Subject, LabelValues]
Terms = tuple[Requirements, ...]
EVERY: Final[Terms] = ({},)


def either(first: Terms, second: Terms) -> Terms:
    """Return the union."""
    return simplify([*first, *second])


def both(first: Terms, second: Terms) -> Terms:
    """Return the intersection."""
    return simplify([_both(a, b) for a in first for b in second])


def _both(first: Requirements, second: Requirements) -> Requirements:
    return {**first, **{key: first[key] & values if key in first else values for key, values in second.items()}}


def complement(terms: Terms) -> Terms:
    """Return the set of all other nodes."""
    result = EVERY
    for term in terms:
        result = both(result, simplify([{key: ~values} for key, values in term.items()]))
    return result


def simplify(terms: list[Requirements]) -> Terms:
    """Return fewer terms that select the same nodes. Raises TooManyTermsError."""
    left = [one for term in terms if (one := _simplified(term)) is not None]
    if len(left) > _JOINED_MAX:
        raise TooManyTermsError
    while (joined := _joined(left)) is not None:
        left = joined
    if len(left) > TERMS_MAX:
        raise TooManyTermsError
    return tuple(left)


def _simplified(term: Requirements) -> Requirements | None:
    """Return a term without what restricts nothing; None if it selects no node."""
    here: dict[Subject, LabelValues] = {}
    for key, values in term.items():
        if _is_never_absent(key):
            found = values & PRESENT
            if found == PRESENT:
                continue
        elif values == ANYTHING:
            continue
        else:
            found = values
        if found == _NOTHING:
            return None
        here[key] = found
    return here


def without_implied(terms: Terms) -> Terms:
    """Return fewer terms that select the same nodes: a label that is the same as a fact is there."""
    left = list[Requirements]()
    for term in terms:
        keys = {subject.key for subject, values in term.items() if isinstance(subject, SameValue) and values == PRESENT}
        here = {subject: values & PRESENT if subject in keys else values for subject, values in term.items()}
        if not any(values.is_nothing for values in here.values()):
            left.append({subject: one for subject, one in here.items() if subject not in keys or one != PRESENT})
    return simplify(left)


def _is_never_absent(subject: Subject) -> bool:
    return subject == NAME or (isinstance(subject, PodFact) and subject.source == "namespace")


def _is_any(subject: Subject, values: LabelValues) -> bool:
    return values.is_anything or (_is_never_absent(subject) and values == PRESENT)


def _joined(terms: list[Requirements]) -> list[Requirements] | None:
    """Return one term less, if one covers another or two differ in one label only; None if there are no such two."""
    for at, one in enumerate(terms):
        for further, other in enumerate(terms[at + 1 :], at + 1):
            rest = [term for where, term in enumerate(terms) if where not in (at, further)]
            if _covers(one, other):
                return [*rest, one]
            if _covers(other, one):
                return [*rest, other]
            differing = [key for key in {**one, **other} if one.get(key) != other.get(key)]
            if len(differing) == 1 and (key := differing[0]) in one and key in other:
                joined = one[key] | other[key]
                kept = {name: values for name, values in one.items() if name != key}
                return [*rest, kept if _is_any(key, joined) else {**kept, key: joined}]
    return None


def _covers(first: Requirements, second: Requirements) -> bool:
    return all(key in second and second[key] | values == values for key, values in first.items())

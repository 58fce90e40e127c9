"""Sets of nodes by their labels, closed under "and", "or" and "not".

A set is a disjunction of terms. A term says for some labels which values they may have, and stands for the nodes that
satisfy all of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

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


Requirements = Mapping[str, LabelValues]
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
    left: list[Requirements] = []
    for term in terms:
        here = {key: _of_name(values) if key == NAME else values for key, values in term.items()}
        if any(values.is_nothing for values in here.values()):
            continue
        left.append(
            {key: values for key, values in here.items() if not (values.is_anything or _is_any_name(key, values))}
        )
    if len(left) > _JOINED_MAX:
        raise TooManyTermsError
    while (joined := _joined(left)) is not None:
        left = joined
    if len(left) > TERMS_MAX:
        raise TooManyTermsError
    return tuple(left)


def _of_name(values: LabelValues) -> LabelValues:
    """Return the same values without "absent": every node has a name."""
    return LabelValues(absent=False, values=values.values, others=values.others)


def _is_any_name(key: str, values: LabelValues) -> bool:
    return key == NAME and values.others and not values.values


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
                is_any = joined.is_anything or _is_any_name(key, joined)
                kept = {name: values for name, values in one.items() if name != key}
                return [*rest, kept if is_any else {**kept, key: joined}]
    return None


def _covers(first: Requirements, second: Requirements) -> bool:
    return all(key in second and second[key] | values == values for key, values in first.items())

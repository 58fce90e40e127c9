"""The nodeAffinity that is equivalent to a filter, or the narrowest known one that its rule implies.

For each part of an expression there are two sets of nodes: those on which it is true, and those on which it is false;
on all others it raises an error. `label_sets` is closed under `!`, `&&`, `||` and `?:`, so the result is exact. Of the
two sets only the one that is asked for is computed.

Where labels cannot say a part, it is either refused, or the sets are bounds: it is possibly true and possibly false
everywhere, and surely neither anywhere. `!` takes the one for the other, but what is possible stays so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from fairlead.cel.syntax.unparse import text
from fairlead.policy.affinity.label_atoms import EXACTLY, NotSaidError, Vocabulary, atom_sets, number_limit
from fairlead.policy.affinity.node_terms import NodeRequirement, with_limits, written_terms
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.symbolic.label_sets import (
    EVERY,
    Terms,
    TooManyTermsError,
    both,
    complement,
    either,
    without_implied,
)
from fairlead.policy.symbolic.terms import Term, TooLargeError, term_of
from fairlead.yaml_output import to_yaml

_TERMS_A_STEP: Final = 2
_TEXT_MAX: Final = 80
_COMPARED_MAX: Final = 100
"""Most pairs of terms that are compared for a bound: what costs more is left out, which is sound."""
_TOO_LARGE: Final = "the expression is too large"
TOO_MANY: Final = "it has too many alternatives"
_MAY_END: Final = "its evaluation may be ended, and then every node passes"


_POSSIBLY: Final[Mapping[bool, Terms]] = {True: EVERY, False: EVERY}
_SURELY: Final[Mapping[bool, Terms]] = {True: (), False: ()}


class NodeBound(NamedTuple):
    """Set of nodes that has all that pass a filter."""

    terms: Terms
    limits: tuple[NodeRequirement, ...] = ()
    """Requirements Gt and Lt that go with each term."""
    left_out: tuple[str, ...] = ()
    """Parts of the expression that are not said, or why they are not; empty if the set has no other nodes."""


_EVERY: Final = NodeBound(EVERY)


def node_affinity(compiled: CompiledExpression, *, rejects_on_error: bool) -> list[dict[str, object]] | None:
    """Return the nodeSelectorTerms that select the nodes that pass; None if no terms do.

    An empty list stands for no node and `[{}]` for every node; Kubernetes itself has neither.
    """
    try:
        found = _passing(_Sets("exactly", EXACTLY), compiled, rejects_on_error=rejects_on_error)
    except (TooLargeError, TooManyTermsError, NotSaidError):
        return None
    return [with_limits(written, found.limits) for term in found.terms for written in written_terms(term)]


def node_bound(compiled: CompiledExpression, vocabulary: Vocabulary, *, rejects_on_error: bool) -> NodeBound:
    """Return a set that has all nodes that pass, as small as the vocabulary allows.

    If errors reject, nodes pass where the expression is true, at most where it is possibly true. Else they pass where
    it is not false, at most where it is not surely false.
    """
    if not rejects_on_error and compiled.has_budget:
        return _EVERY._replace(left_out=(_MAY_END,))
    sets = _Sets("possibly" if rejects_on_error else "surely", vocabulary)
    try:
        found = _passing(sets, compiled, rejects_on_error=rejects_on_error)
    except TooLargeError:
        return _EVERY._replace(left_out=(_TOO_LARGE,))
    return found._replace(terms=without_implied(found.terms), left_out=tuple(dict.fromkeys(sets.left_out)))


def condition_terms(compiled: CompiledExpression) -> Terms:
    """Return for which pods a condition on pods is true. Raises NotSaidError."""
    try:
        return _Sets("exactly", Vocabulary()).of(term_of(compiled), want=True)
    except TooLargeError as error:
        raise NotSaidError(_TOO_LARGE) from error
    except TooManyTermsError as error:
        raise NotSaidError(TOO_MANY) from error


def as_yaml(terms: list[dict[str, object]]) -> str:
    """Return the part of a pod's spec with these terms, as YAML."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return to_yaml({"affinity": {"nodeAffinity": required}})


def _passing(sets: "_Sets", compiled: CompiledExpression, *, rejects_on_error: bool) -> NodeBound:
    whole = term_of(compiled)
    if not rejects_on_error:
        return NodeBound(sets.all_but(sets.of(whole, want=False)))
    limits: list[NodeRequirement] = []
    passing = EVERY
    for part in _parts(whole):
        if (limit := sets.limit(part)) is not None:
            limits.append(limit)
        else:
            passing = sets.both(passing, sets.of(part, want=True))
    return NodeBound(passing, tuple(limits))


def _parts(term: Term) -> Iterator[Term]:
    """Yield the operands of a conjunction."""
    if parts := term.args("_&&_"):
        for part in parts:
            yield from _parts(part)
    else:
        yield term


@dataclass(slots=True)
class _Sets:
    """Sets of nodes on which parts of an expression are true and false, exact or as bounds."""

    kind: Literal["exactly", "possibly", "surely"]
    vocabulary: Vocabulary
    left_out: list[str] = field(default_factory=list)
    _compared: int = 0
    """Pairs of terms that were compared for bounds."""

    def of(self, term: Term, *, want: bool) -> Terms:
        """Return the nodes on which a term has this value.

        Raises TooLargeError, and if they are exact NotSaidError and TooManyTermsError.
        """
        if negated := term.args("!_"):
            return self.of(negated[0], want=not want)
        if parts := term.args("_&&_", "_||_"):
            first, second = (self.of(one, want=want) for one in parts)
            if (term.function == "_||_") is want:
                return self.either(first, second)
            term.steps.take(len(first) * len(second) // _TERMS_A_STEP)
            return self.both(first, second)
        if chosen := term.args("_?_:_"):
            condition, *branches = chosen
            ways = [
                (self.of(condition, want=way), self.of(branch, want=want))
                for way, branch in zip((True, False), branches, strict=True)
            ]
            term.steps.take(sum(len(first) * len(second) for first, second in ways))
            return self.either(*(self.both(first, second) for first, second in ways))
        value = term.constant()
        if isinstance(value, bool):
            return EVERY if value is want else ()
        try:
            true, false = atom_sets(term, self.vocabulary)
        except NotSaidError as error:
            return self._unsaid(term, error, want=want)
        return true if want else false

    def limit(self, term: Term) -> NodeRequirement | None:
        """Return a comparison of numbers as a requirement; None if it is none. Raises NotSaidError if exact."""
        try:
            return number_limit(term, self.vocabulary)
        except NotSaidError:
            return None  # asked for its sets, it says why

    def both(self, first: Terms, second: Terms) -> Terms:
        """Return the intersection, or if it has too many terms a bound of it. Raises TooManyTermsError if exact."""
        try:
            self._compare(len(first) * len(second))
            return both(first, second)
        except TooManyTermsError:
            if self.kind == "exactly":
                raise
            self.left_out.append(TOO_MANY)
            return min(first, second, key=lambda terms: (terms == EVERY, len(terms))) if self._is_upper else ()

    def either(self, first: Terms, second: Terms) -> Terms:
        """Return the union, or if it has too many terms a bound of it. Raises TooManyTermsError if exact."""
        try:
            self._compare(len(first) * len(second))
            return either(first, second)
        except TooManyTermsError:
            if self.kind == "exactly":
                raise
            self.left_out.append(TOO_MANY)
            return EVERY if self._is_upper else first

    def all_but(self, terms: Terms) -> Terms:
        """Return the other nodes; where they are no bound but exact, raises TooManyTermsError."""
        if self.kind == "exactly":
            return complement(terms)
        result = EVERY
        for term in terms:
            try:
                self._compare(len(result) * len(term))
                result = both(result, complement((term,)))
            except TooManyTermsError:  # without it there are more others
                self.left_out.append(TOO_MANY)
        return result

    def _compare(self, pairs: int) -> None:
        """Count pairs of terms that are to be compared for a bound. Raises TooManyTermsError after too many."""
        if self.kind != "exactly":
            self._compared += pairs
            if self._compared > _COMPARED_MAX:
                raise TooManyTermsError

    @property
    def _is_upper(self) -> bool:
        return self.kind == "possibly"

    def _unsaid(self, term: Term, error: NotSaidError, *, want: bool) -> Terms:
        """Return where a part that labels cannot say has a value: possibly everywhere, surely nowhere.

        Raises NotSaidError if the sets are exact.
        """
        bounds = _POSSIBLY if self._is_upper else _SURELY
        written = text(term.node)
        part = f"`{written if len(written) <= _TEXT_MAX else f'{written[:_TEXT_MAX]}...'}`"
        why = f"{part}: {error}" if str(error) else part
        if self.kind == "exactly":
            raise NotSaidError(why)
        self.left_out.append(why)
        return bounds[want]

"""Publication of policies: node affinity that their filters imply, as data for pods that are created.

No part of an expression is translated to another language. A policy's `match` and the parts of its filters that depend
on the pod become guards, of a closed list of comparisons; what is not in it is left out, and then more nodes are
selected. A pod that the policy does not match never gets its affinity, so `match` has to be told exactly.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final, NamedTuple, TypedDict

from fairlead.api.selectors import LabelSelector
from fairlead.cooperative import Steps, finish
from fairlead.policy.affinity.label_atoms import NotSaidError, Vocabulary
from fairlead.policy.affinity.node_affinity import TOO_MANY, condition_terms, node_bound
from fairlead.policy.affinity.node_terms import (
    GUARD_VALUES_MAX,
    GUARDS_MAX,
    TERMS_MAX,
    NodeRequirement,
    PublishedGuard,
    PublishedTerm,
    published_guards,
    published_terms,
)
from fairlead.policy.compile.model import CompiledMatch, CompiledPolicy, FilterRule
from fairlead.policy.symbolic.label_sets import (
    ABSENT,
    ANYTHING,
    EVERY,
    PRESENT,
    FactSource,
    LabelValues,
    PodFact,
    Subject,
    Terms,
    TooManyTermsError,
    both,
    simplify,
)

POLICIES_MAX: Final = 64
_BY_STRATEGY: Final = "it is decided by a strategy"
_OVER_LIMITS: Final = "it has more requirements or values than are published"


class LeftOut(NamedTuple):
    """Part of a rule that is not published, so that more nodes are selected than pass."""

    rule: str
    reason: str


class PublishedPolicy(TypedDict):
    """Alternatives that a policy publishes for the pods for which its guards hold."""

    name: str
    uid: str
    generation: int
    when: list[PublishedGuard]
    terms: list[PublishedTerm]


class AffinityOfScheduler(TypedDict):
    """Affinity that all policies publish for the pods of a scheduler."""

    schedulerName: str
    hash: str
    policies: list[PublishedPolicy]


class PolicyPublication(NamedTuple):
    """Affinity that a policy publishes."""

    policy: PublishedPolicy | None
    """None if it publishes nothing."""
    left_out: tuple[LeftOut, ...] = ()
    """Parts that are not published; empty if the affinity selects exactly the nodes that pass."""
    unknown_match: LeftOut | None = None
    """The part of `match` that cannot be told, so that nothing is published."""


def publication_of(policy: CompiledPolicy, vocabulary: Vocabulary) -> PolicyPublication:
    """Return what a policy publishes."""
    return finish(publication_steps(policy, vocabulary))


def publication_steps(policy: CompiledPolicy, vocabulary: Vocabulary) -> Steps[PolicyPublication]:
    """Compute what a policy publishes, with a pause before each filter."""
    if not policy.filters:
        return PolicyPublication(None)
    try:
        match = _match_terms(policy.match)
    except _UnknownMatchError as error:
        return PolicyPublication(None, unknown_match=error.part)
    when = published_guards(match[0]) if len(match) == 1 else []
    if len(when) > GUARDS_MAX or any(len(one.get("values", ())) > GUARD_VALUES_MAX for one in when):
        return PolicyPublication(None, unknown_match=LeftOut("match", TOO_MANY))
    # Alternatives of the match go into the terms: where none holds, nothing is published.
    draft = _Draft(EVERY if len(match) == 1 else match)
    for rule in policy.filters:
        yield
        draft.add(rule, vocabulary)
    if not policy.enforced or not draft.says_something:
        return PolicyPublication(None, tuple(draft.left_out))
    written: PublishedPolicy = {
        "name": policy.name,
        "uid": policy.uid,
        "generation": int(policy.generation) if policy.generation.isdecimal() else 0,
        "when": when,
        "terms": draft.written,
    }
    return PolicyPublication(written, tuple(draft.left_out))


def affinity_of_scheduler(scheduler_name: str, policies: Iterable[PublishedPolicy | None]) -> AffinityOfScheduler:
    """Return what policies publish for the pods of a scheduler, by their names; of too many the last are left out.

    An edit that changes nothing of what pods get keeps the hash.
    """
    kept = sorted((one for one in policies if one is not None), key=itemgetter("name"))[:POLICIES_MAX]
    text = json.dumps([scheduler_name, [[one["name"], one["when"], one["terms"]] for one in kept]], sort_keys=True)
    return {
        "schedulerName": scheduler_name,
        "hash": hashlib.sha256(text.encode()).hexdigest()[:12],
        "policies": kept,
    }


def affinities(policies: Iterable[CompiledPolicy], vocabulary: Vocabulary) -> Mapping[str, AffinityOfScheduler]:
    """Return what policies with `publish` publish, by scheduler; one of which nothing is published is left out."""
    found: dict[str, list[PublishedPolicy]] = {}
    for one in policies:
        if one.publishes and (published := publication_of(one, vocabulary).policy) is not None:
            found.setdefault(one.scheduler_name, []).append(published)
    return {name: affinity_of_scheduler(name, published) for name, published in found.items()}


class _Draft:
    """Alternatives of a policy, to which the bounds of its filters are added one by one."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.has_match: Final = terms != EVERY
        self.limits: tuple[NodeRequirement, ...] = ()
        self.written: list[PublishedTerm] = []
        self.left_out: list[LeftOut] = []

    @property
    def says_something(self) -> bool:
        """Report whether it asks anything of a node for some pod."""
        return any("matchExpressions" in one for one in self.written)

    def add(self, rule: FilterRule, vocabulary: Vocabulary) -> None:
        """Add what a filter implies, or the reason for which it is left out."""
        if rule.expression is None:
            self.left_out.append(LeftOut(rule.name, _BY_STRATEGY))
            return
        bound = node_bound(rule.expression, vocabulary, rejects_on_error=rule.rejects_on_error)
        self.left_out += [LeftOut(rule.name, one) for one in bound.left_out]
        limits = (*self.limits, *bound.limits)
        try:
            terms = both(self.terms, bound.terms)
        except TooManyTermsError:
            self.left_out.append(LeftOut(rule.name, TOO_MANY))
            return
        parts = [part for term in terms for part in published_terms(term, limits)]
        if len(parts) > TERMS_MAX:
            self.left_out.append(LeftOut(rule.name, TOO_MANY))
            return
        if not all(is_whole for _, is_whole in parts):
            self.left_out.append(LeftOut(rule.name, _OVER_LIMITS))
            if self.has_match:  # without a guard of the match other pods would get its affinity
                return
        self.terms, self.limits, self.written = terms, limits, [part for part, _ in parts]


class _UnknownMatchError(Exception):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.part = LeftOut(name, reason)


def _match_terms(match: CompiledMatch) -> Terms:
    """Return for which pods a policy applies without doubt. Raises _UnknownMatchError."""
    facts: dict[Subject, LabelValues] = {}
    if match.namespaces is not None:
        facts[PodFact("namespace")] = LabelValues(absent=False, values=match.namespaces)
    written = match.written
    selectors: tuple[tuple[FactSource, LabelSelector | None], ...] = (
        ("namespaceLabel", written.namespace_selector),
        ("label", written.pod_selector),
    )
    for source, selector in selectors:
        for key, values in _selected(selector):
            fact = PodFact(source, key)
            facts[fact] = facts.get(fact, ANYTHING) & values
    result = simplify([facts])
    for condition in match.conditions:
        try:
            result = both(result, condition_terms(condition.expression))
        except NotSaidError as error:
            raise _UnknownMatchError(condition.name, str(error)) from error
        except TooManyTermsError as error:
            raise _UnknownMatchError(condition.name, TOO_MANY) from error
    return result


def _selected(selector: LabelSelector | None) -> Iterator[tuple[str, LabelValues]]:
    if selector is None:
        return
    for key, value in selector.match_labels.items():
        yield key, LabelValues(absent=False, values=frozenset({value}))
    for each in selector.match_expressions:
        values = LabelValues(absent=False, values=frozenset(each.values))
        match each.operator:
            case "In":
                yield each.key, values
            case "NotIn":
                yield each.key, ~values
            case "Exists":
                yield each.key, PRESENT
            case "DoesNotExist":
                yield each.key, ABSENT

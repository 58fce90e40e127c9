"""Node affinity that the pod of a case is created with, as expected and as it is."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fairlead.policy.affinity.label_atoms import Vocabulary
from fairlead.policy.affinity.publication_text import requirement_text
from fairlead.policy.affinity.published_pods import CreatedTerms, created_terms, labels_of_namespace
from fairlead.policy.affinity.published_policies import affinities
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.suites.objects import CaseInputs
from fairlead.suites.suite import ExpectedTerm

NOT_PUBLISHED: Final = "no policy of this suite publishes node affinity"
_Requirements = frozenset[tuple[str, str, frozenset[str]]]
_Term = tuple[_Requirements, _Requirements]
"""Requirements on labels and on fields, whose order does not matter."""


class AffinityDifference(NamedTuple):
    """Expected terms that are not those of a pod, in words."""

    expected: str
    got: str
    notes: Sequence[str]


def affinity_of_case(policies: Iterable[CompiledPolicy], inputs: CaseInputs) -> CreatedTerms:
    """Return the terms with which the pod of a case is created."""
    affinity = affinities(policies, Vocabulary()).get(str(inputs.pod["spec"]["schedulerName"]))
    if affinity is None:
        return CreatedTerms((), "nothing is published for its scheduler")
    namespace = str(inputs.pod["metadata"]["namespace"])
    found = next(one for one in inputs.namespaces if one["metadata"]["name"] == namespace)
    return created_terms(inputs.pod, labels_of_namespace(namespace, found["metadata"].get("labels") or {}), affinity)


def affinity_difference(wanted: Iterable[ExpectedTerm], created: CreatedTerms | None) -> AffinityDifference | None:
    """Return how the terms of a pod differ from the expected ones; None if they select the same in the same way."""
    terms, why_none = ((), "") if created is None else created
    expected = {_term(one.model_dump(by_alias=True)): None for one in wanted}
    actual = {_term(one): None for one in terms}
    if expected.keys() == actual.keys():
        return None
    got = _in_words(actual) if actual else f"none: {why_none}"
    notes: list[str] = []
    if max(len(expected), len(actual)) > 1:
        notes += [f"not there: {_words(one)}" for one in expected if one not in actual]
        notes += [f"not expected: {_words(one)}" for one in actual if one not in expected]
    return AffinityDifference(_in_words(expected) if expected else "none", got, notes)


def _term(term: Mapping[str, Any]) -> _Term:
    return _requirements(term.get("matchExpressions")), _requirements(term.get("matchFields"))


def _requirements(written: Iterable[Mapping[str, Any]] | None) -> _Requirements:
    return frozenset((one["key"], one["operator"], frozenset(one.get("values") or ())) for one in written or ())


def _in_words(terms: Iterable[_Term]) -> str:
    return ", or ".join(map(_words, terms))


def _words(term: _Term) -> str:
    said = [
        requirement_text({"key": key, "operator": operator, "values": sorted(values)})
        for part in term
        for key, operator, values in sorted(part, key=str)
    ]
    return " and ".join(said) or "a term without requirements"

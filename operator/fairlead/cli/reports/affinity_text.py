"""Text of `fairlead affinity`. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairlead.cli.console.output import clean
from fairlead.cli.reports.affinity_report import AffinityReport, NamedPublication, PodAffinity
from fairlead.policy.affinity.node_affinity import as_yaml
from fairlead.policy.affinity.node_terms import PublishedGuard, PublishedTerm

_FACTS: Final = {
    "label": "label",
    "annotation": "annotation",
    "namespaceLabel": "namespace's label",
    "resource": "limit of",
}
_SIGNS: Final = {"In": "in", "NotIn": "not in", "Gt": ">", "Lt": "<"}


def affinity_text(report: AffinityReport) -> Iterator[str]:
    """Yield what policies imply, then what each pod would be created with."""
    for at, one in enumerate(report.publications):
        yield from ("",) * bool(at)
        yield from map(clean, _policy(one))
    for pod in report.pods:
        yield ""
        yield from _pod(pod)


def _policy(named: NamedPublication) -> Iterator[str]:
    publication = named.publication
    found = publication.policy
    head = f"{named.policy} (scheduler {named.scheduler})"
    if (part := publication.unknown_match) is not None:
        yield f"{head}: nothing, because labels cannot say which pods it matches"
        yield f"  {part.rule}: {part.reason}"
        return
    if found is None:
        yield f"{head}: nothing"
    else:
        yield f"{head}: {'the nodes that pass, and others' if publication.left_out else 'exactly the nodes that pass'}"
        for guard in found["when"]:
            yield f"  for pods with {_guard(guard)}"
        yield from (f"  - {_term(term)}" for term in found["terms"])
    for left in publication.left_out:
        yield f"  left out of {left.rule}: {left.reason}"


def _term(term: PublishedTerm) -> str:
    asked = " and ".join(map(_requirement, term.get("matchExpressions", ()))) or "any node"
    guards = " and ".join(map(_guard, term.get("when", ())))
    return f"{asked}, for pods with {guards}" if guards else asked


def _requirement(requirement: Mapping[str, Any]) -> str:
    key, operator = requirement["key"], requirement["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return f"{key} is {'there' if operator == 'Exists' else 'absent'}"
    if "values" in requirement:
        return f"{key} {_SIGNS[operator]} {_values(requirement['values'])}"
    return f"{key} {'is' if operator == 'In' else 'is not'} the {_fact(requirement)}"


def _guard(guard: PublishedGuard) -> str:
    operator = guard["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return f"{'' if operator == 'Exists' else 'no '}{_fact(guard)}"
    return f"{_fact(guard)} {_SIGNS[operator]} {_values(guard['values'])}"


def _fact(reading: Mapping[str, Any]) -> str:
    words = {
        "label": "label",
        "annotation": "annotation",
        "namespaceLabel": "namespace's label",
        "resource": "limit of",
    }
    for source, word in words.items():
        if source in reading:
            default = f" (absent: {reading['default'] or repr('')})" if "default" in reading else ""
            return f"{word} {reading[source]}{default}"
    return "namespace"


def _values(values: list[str]) -> str:
    return ", ".join(one or repr("") for one in values)


def _pod(pod: PodAffinity) -> Iterator[str]:
    if pod.why_none:
        yield clean(f"{pod.name}: {pod.why_none}")
        return
    yield clean(f"{pod.name} would be created with")
    yield from (clean(line) for line in as_yaml([*map(dict, pod.terms)]).splitlines())

"""Text of `fairlead affinity`. Pure."""

from collections.abc import Iterator, Sequence

from fairlead.cli.console.output import clean
from fairlead.cli.reports.affinity_report import AffinityReport, NamedPublication, PodAffinity
from fairlead.policy.affinity.node_affinity import as_yaml
from fairlead.policy.affinity.publication_text import guard_text, term_text


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
    elif found is None:
        yield f"{head}: nothing"
    else:
        yield f"{head}: {'the nodes that pass, and others' if publication.left_out else 'exactly the nodes that pass'}"
        for guard in found["when"]:
            yield f"  for pods with {guard_text(guard)}"
        yield from (f"  - {term_text(term)}" for term in found["terms"])
    for left in publication.left_out:
        yield f"  left out of {left.rule}: {left.reason}"
    if named.in_shadow:
        yield f"  left out, as long as {_are(named.in_shadow)} in shadow: {', '.join(named.in_shadow)}"


def _are(names: Sequence[str]) -> str:
    return "it is" if len(names) == 1 else "they are"


def _pod(pod: PodAffinity) -> Iterator[str]:
    if pod.why_none:
        yield clean(f"{pod.name}: {pod.why_none}")
        return
    yield clean(f"{pod.name} would be created with")
    yield from (clean(line) for line in as_yaml([*map(dict, pod.terms)]).splitlines())

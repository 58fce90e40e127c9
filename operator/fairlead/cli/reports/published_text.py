"""Published affinity of an explained pod: text and data. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from fairlead.cli.reports.rows import some
from fairlead.policy.affinity.label_requirement import LabelRequirement
from fairlead.policy.affinity.publication_text import requirement_text
from fairlead.policy.affinity.published_parts import PublishedOfPod, PublishedPart
from fairlead.simulation.results import PodResult


def published_lines(published: PublishedOfPod, excluded: Sequence[str]) -> Iterator[str]:
    """Yield which parts of a pod's node affinity are published now, and what an older publication excludes.

    `excluded` are the nodes that all rules pass, and its affinity excludes.
    """
    for part in published.parts:
        yield f"{part.policy} publishes: {_alternatives(part)}"
    if published.others:
        asked = ", ".join(map(_text, published.others))
        yield f"not published now, but its own or published before: {asked}"
    if published.added:
        yield "It would be created with this now."
    elif published.is_outdated:
        now = f"{published.current} is now" if published.current else "now nothing is"
        yield f"It was created when {published.hash} was published for its scheduler, and {now}."
    if excluded:
        which = f"{some(excluded)} {'passes' if len(excluded) == 1 else 'pass'}"
        yield f"{which} all rules but not its node affinity, which cannot be changed: create the pod again."


def published_data(judged: PodResult) -> dict[str, Any] | None:
    """Return the published affinity of a pod for programs; None if it has none."""
    published = judged.published
    if published is None:
        return None
    return {
        "hash": published.hash,
        "currentHash": published.current or None,
        "added": published.added,
        "requirements": [
            {"policy": part.policy, **_data(one)} for part in published.parts for one in part.requirements
        ],
        "others": [_data(one) for one in published.others],
        "excludedNodes": [*judged.excluded],
    }


def _alternatives(part: PublishedPart) -> str:
    return ", or ".join(" and ".join(map(_text, one)) for one in part.alternatives)


def _text(requirement: LabelRequirement) -> str:
    return requirement_text(_data(requirement))


def _data(requirement: LabelRequirement) -> dict[str, Any]:
    return {"key": requirement.key, "operator": requirement.operator, "values": [*requirement.values]}

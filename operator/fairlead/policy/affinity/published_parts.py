"""Parts of a pod's node affinity that policies publish: which requirements of it are whose."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from fairlead.policy.affinity.label_requirement import LabelRequirement, Labels
from fairlead.policy.affinity.published_pods import (
    LEFT_ALONE,
    PUBLISHED_ANNOTATION,
    Manifest,
    alternatives_by_policy,
    required_terms,
)

if TYPE_CHECKING:
    from fairlead.policy.affinity.published_policies import AffinityOfScheduler, PublishedPolicy

AffinityByScheduler: TypeAlias = Mapping[str, "AffinityOfScheduler"]
NOTHING_PUBLISHED: Final[AffinityByScheduler] = MappingProxyType({})
Alternatives = tuple[tuple[LabelRequirement, ...], ...]


class PublishedPart(NamedTuple):
    """Alternatives that a policy publishes, of which each term of a pod has one."""

    policy: str
    alternatives: Alternatives

    def selects(self, labels: Labels) -> bool:
        """Report whether a node with these labels meets one of the alternatives."""
        return any(all(requirement.holds(labels) for requirement in one) for one in self.alternatives)

    @property
    def requirements(self) -> list[LabelRequirement]:
        """The requirements of all alternatives, each once."""
        return [*dict.fromkeys(requirement for one in self.alternatives for requirement in one)]


class PublishedOfPod(NamedTuple):
    """Published affinity of a pod that was created with some."""

    hash: str
    """Hash of what was published for its scheduler when it was created."""
    current: str = ""
    """Hash of what is published for its scheduler now; empty if nothing is."""
    parts: Sequence[PublishedPart] = ()
    """Parts of its affinity that policies publish now."""
    others: Sequence[LabelRequirement] = ()
    """Requirements that are published no more, or were its own."""
    added: bool = False
    """True if it was given them here, as it would be created now."""

    @property
    def is_outdated(self) -> bool:
        """True if something else, or nothing, is published now."""
        return self.hash != self.current

    @property
    def policies(self) -> list[str]:
        """Names of the policies that publish parts of its affinity now."""
        return [one.policy for one in self.parts]


def published_of_pod(
    pod: Manifest, namespace_labels: Mapping[str, str], affinity: "AffinityOfScheduler | None"
) -> PublishedOfPod | None:
    """Return the published affinity of a pod, of which its annotation tells; None if it has none.

    `affinity` is what is published now for its scheduler.
    """
    found = ((pod.get("metadata") or {}).get("annotations") or {}).get(PUBLISHED_ANNOTATION)
    if not found or found == LEFT_ALONE:
        return None
    terms = [terms for one in required_terms(pod) or () if (terms := _labelled(one)) is not None]
    parts = [] if affinity is None else [*_parts(terms, alternatives_by_policy(pod, namespace_labels, affinity))]
    known = {requirement for one in parts for requirement in one.requirements}
    others = dict.fromkeys(one for term in terms for one in term if one not in known)
    return PublishedOfPod(found, "" if affinity is None else affinity["hash"], parts, [*others])


def _parts(
    terms: Sequence[tuple[LabelRequirement, ...]], published: Sequence[tuple[str, list[list[dict[str, Any]]]]]
) -> Iterator[PublishedPart]:
    """Yield what is published and in the terms: one alternative of a policy in each."""
    for policy, written in published:
        alternatives = tuple(tuple(map(LabelRequirement.of, one)) for one in written)
        if terms and all(any({*one} <= {*term} for one in alternatives) for term in terms):
            yield PublishedPart(policy, alternatives)


def _labelled(term: Manifest) -> tuple[LabelRequirement, ...] | None:
    """Return the requirements of a term on labels; None of one that selects nothing."""
    written = term.get("matchExpressions") or ()
    return tuple(map(LabelRequirement.of, written)) if written or term.get("matchFields") else None


def without_namespace_labels(affinity: "AffinityOfScheduler") -> "AffinityOfScheduler":
    """Return what is published without the policies of which it depends on the labels of a pod's namespace."""
    kept = [one for one in affinity["policies"] if not any("namespaceLabel" in each for each in _readings(one))]
    return {**affinity, "policies": kept}


def _readings(policy: "PublishedPolicy") -> Iterator[Mapping[str, object]]:
    """Yield what is read of a pod."""
    yield from policy["when"]
    for term in policy["terms"]:
        yield from (*term.get("when", ()), *term.get("matchExpressions", ()))

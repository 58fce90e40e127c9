"""Late labels: published keys that came on a node after it had joined, so that no template of a node has them. Pure."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from fairlead.cooperative import Steps
from fairlead.policy.affinity.published_policies import PublishedPolicy
from fairlead.policy.views.node_view import NodeView
from fairlead.time_units import SECOND_NS

_REGISTERED: Final = "karpenter.sh/registered"
"""Label that Karpenter writes last, with those of the node's template."""
_OF_CLOUDS: Final = frozenset(
    f"{prefix}{name}"
    for prefix, names in (
        ("topology.kubernetes.io/", ("zone", "region")),
        ("failure-domain.beta.kubernetes.io/", ("zone", "region")),
        ("node.kubernetes.io/", ("instance-type",)),
        ("beta.kubernetes.io/", ("instance-type",)),
    )
    for name in names
)
"""Labels that a cloud's controller writes on a node that has joined, and that autoscalers know all the same."""
_LATEST_NS: Final = 86_400 * SECOND_NS
"""Delay after which a person has labelled the node."""
_AT_ONCE: Final = 200


class LateLabel(NamedTuple):
    """A key that came late."""

    key: str
    node: str
    delay_s: int


def published_keys(policy: PublishedPolicy) -> frozenset[str]:
    """Return the keys of labels that a policy publishes and a node template can have."""
    return frozenset(one["key"] for term in policy["terms"] for one in term.get("matchExpressions", ())) - _OF_CLOUDS


def late_labels(nodes: Iterable[NodeView | None], keys: Collection[str]) -> Steps[Mapping[str, list[LateLabel]]]:
    """Return the late labels by key, with a pause after some nodes."""
    found: dict[str, list[LateLabel]] = {}
    for number, node in enumerate(nodes, 1):
        if node is not None and node.created is not None:
            joined = max(node.created, node.since("labels", _REGISTERED, None) or 0)
            for key in keys:
                at = node.since("labels", key, None)
                if at is not None and joined < at <= joined + _LATEST_NS:
                    late = LateLabel(key, node.name, (at - node.created) // SECOND_NS)
                    found.setdefault(key, []).append(late)
        if not number % _AT_ONCE:
            yield
    return found

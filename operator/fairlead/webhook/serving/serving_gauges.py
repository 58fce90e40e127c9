"""Gauges of what serves: the policy set, the state of each policy, open circuits and the verdict cache."""

from collections.abc import Iterator, Mapping

from fairlead.metrics import Gauges, Labels
from fairlead.webhook.extender.circuit_breaker import REASON
from fairlead.webhook.serving.policy_store import PolicyStore
from fairlead.webhook.serving.reloader import PolicyReloader


def serving_gauges(policies: PolicyStore, reloader: PolicyReloader) -> Iterator[Gauges]:
    """Yield the gauges of the policies of a replica."""
    circuits, counts = reloader.open_circuits, reloader.cache_counts

    def policy_set() -> Mapping[Labels, float]:
        state = reloader.state
        return {} if state is None else {(state.policies.generation,): 1}

    def policy_states() -> Mapping[Labels, float]:
        return {(one.name, one.reason): 1 for one in policies.states.values()} | {
            (slow.policy.name, REASON): 1 for slow in circuits() if slow.scope == "all"
        }

    def topology_domains() -> Mapping[Labels, float]:
        found: dict[Labels, float] = {}
        if (state := reloader.state) is not None:
            kept = state.scores.nodes.home.topologies
            for policy in state.policies.policies:
                for rule in policy.scores:
                    for read in rule.score.reads.topology:
                        if (topology := kept.get(read)) is not None:
                            found[policy.name, rule.name] = topology.domains
        return found

    yield Gauges("fairlead_policy_set_info", "Policy set that this replica serves, by its hash.", ("hash",), policy_set)
    yield Gauges(
        "fairlead_policy_state",
        "1 for the current state of each policy on this replica.",
        ("policy", "reason"),
        policy_states,
    )
    yield Gauges(
        "fairlead_policy_open_circuits",
        "Equivalence classes of pods that a policy's failure policy answers because it is too slow; 4: a namespace.",
        ("policy", "part"),
        lambda: {(slow.policy.name, slow.part): slow.classes for slow in circuits() if slow.scope != "all"},
    )
    yield Gauges(
        "fairlead_verdict_cache_entries",
        "Equivalence classes of pods with cached verdicts.",
        (),
        lambda: {(): len(state.scores.classes)} if (state := reloader.state) else {},
    )
    yield Gauges(
        "fairlead_topology_domains",
        "Domains of nodes, of all levels together, by which a score topology tells nodes apart.",
        ("policy", "rule"),
        topology_domains,
    )
    yield Gauges(
        "fairlead_verdict_cache_bytes",
        "Memory of the cached verdicts.",
        (),
        lambda: {(): state.scores.classes.size} if (state := reloader.state) else {},
    )
    yield Gauges(
        "fairlead_verdict_cache_lookups",
        "Lookups of cached verdicts by calls of schedulers, by the result.",
        ("result",),
        lambda: {("hit",): counts.hits, ("miss",): counts.misses},
        grows=True,
    )
    yield Gauges(
        "fairlead_verdict_cache_evictions",
        "Cached verdicts that were dropped to make room for others.",
        (),
        lambda: {(): counts.evictions},
        grows=True,
    )

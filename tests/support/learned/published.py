"""Learned state of a rule, as ConfigMaps of the operator's namespace."""

from collections.abc import Iterable
from typing import Any

from fairlead.learned.content import encode_demands, encode_pairs
from fairlead.learned.demands import Demands
from fairlead.learned.pair import OutcomeSums, node_key
from fairlead.learned.pairs import Key, Meaning, shard_of
from fairlead.learned.published import Publication, config_map, names_of
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.webhook.learning.followed_rules import followed_requests, followed_rules

Learned = tuple[str, str, float, float, int]
"""Type, UID of the node, rewards, weights, and the time of the last outcome."""
_UNSAID = Publication()


def published_requests(policy: CompiledPolicy, requests: Demands, publication: Publication = _UNSAID) -> dict[str, Any]:
    """Return the ConfigMap of the only rule of a policy that learns requests."""
    (rule,) = followed_requests([policy])
    one = config_map(rule.rule, names_of(rule.rule, 0)[0], encode_demands(requests, 100).data, publication)
    one["metadata"] |= {"namespace": "fairlead-system", "uid": "c-requests", "resourceVersion": "9"}
    return one


def published(
    policy: CompiledPolicy, learned: Iterable[Learned], publication: Publication = _UNSAID
) -> list[dict[str, Any]]:
    """Return the ConfigMaps of the only rule of a policy that learns."""
    (rule,) = followed_rules([policy])
    shards: dict[int, dict[Key, OutcomeSums]] = {}
    for kind, uid, rewards, weight, at in learned:
        key = kind, node_key(uid)
        shards.setdefault(shard_of(key), {})[key] = OutcomeSums(rewards, weight, at)
    made = []
    for number, shard in shards.items():
        data = encode_pairs(shard, Meaning(21_600), 0).data
        one = config_map(rule.rule, names_of(rule.rule, number)[0], data, publication)
        one["metadata"] |= {"namespace": "fairlead-system", "uid": f"c-{number}", "resourceVersion": "9"}
        made.append(one)
    return made

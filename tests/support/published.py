"""Published affinity, and pods as the API server creates them with it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from fairlead.policy.affinity.published_policies import AffinityOfScheduler, PublishedPolicy
from fairlead.webhook.publication.affinity_feed import CurrentAffinity

SCHEDULER = "fairlead"


def requirement(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [*values]} if values else {"key": key, "operator": "Exists"}


def part(name: str = "p", *alternatives: Sequence[Mapping[str, Any]], team: str = "") -> PublishedPolicy:
    """Return what a policy publishes, for pods of one team only if it is given."""
    when = [{"label": "team", "operator": "In", "values": [team], "default": ""}] if team else []
    terms = [{"matchExpressions": [*one]} for one in alternatives]
    return cast("PublishedPolicy", {"name": name, "uid": f"u-{name}", "generation": 1, "when": when, "terms": terms})


def affinity(version: str, *parts: PublishedPolicy) -> AffinityOfScheduler:
    return {"schedulerName": SCHEDULER, "hash": version, "policies": [*parts]}


def current(version: str, *parts: PublishedPolicy, since_s: float = 0.0, before: Sequence[PublishedPolicy] = ()) -> Any:
    return CurrentAffinity(affinity(version, *parts), since_s, {one["name"]: one for one in before})


def required(*terms: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the affinity of a pod that requires one of these terms."""
    written = {"nodeSelectorTerms": [{"matchExpressions": [*one]} for one in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": written}}

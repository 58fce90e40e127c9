"""Limit of the schedulers that policies name and no setting lists, because users may write policies freely.

Pure, and the same on every leader: existing schedulers keep their places; the others start in the order of their oldest
policies.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from fairlead.api.names import CLUSTERS_OWN_SCHEDULER, scheduler_of
from fairlead.control.decide.desired import is_being_deleted
from fairlead.render.operator_settings import OperatorSettings

_HINT: Final = "list it there, or ask the operator's administrator"


def requested_since(policies: Iterable[Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the schedulers that policies name, each with the creation time of its oldest policy."""
    found: dict[str, str] = {}
    for one in policies:
        if not is_being_deleted(one):
            name, since = scheduler_of(one), one["metadata"].get("creationTimestamp", "")
            found[name] = min(found.get(name, since), since)
    return found


def denial_reason(scheduler: str, settings: OperatorSettings) -> str:
    """Return why a scheduler may not exist; "" if it may."""
    if settings.lists(scheduler) or settings.unlisted_schedulers == "Allow":
        return ""
    return f"{_unlisted(scheduler)}, and unlistedSchedulers is Deny: {_HINT}"


def no_room_reason(
    scheduler: str, settings: OperatorSettings, existing: Collection[str], requested: Callable[[], Mapping[str, str]]
) -> str:
    """Return why a scheduler may not start beside the existing ones; "" if it may, or if it never starts.

    `requested` returns since when each scheduler is requested; it is not called if there is no room anyway.
    """
    listed = _listed(settings)
    if scheduler in listed or scheduler in existing or scheduler == CLUSTERS_OWN_SCHEDULER:
        return ""
    placed, before, most = sum(one not in listed for one in existing), 0, settings.max_unlisted_schedulers
    if placed < most:
        waiting = [one for one in in_order_of_request(requested(), settings) if one not in existing]
        before = waiting.index(scheduler) if scheduler in waiting else len(waiting)
    if placed + before < most:
        return ""
    others = f"{placed} unlisted ones exist" + (f", {before} more were requested earlier" if before else "")
    return f"{_unlisted(scheduler)}, and maxUnlistedSchedulers is {most}: {others}; {_HINT}"


def in_order_of_request(requested: Mapping[str, str], settings: OperatorSettings) -> Sequence[str]:
    """Return the requested schedulers that need room, in the order in which they get it."""
    left_out = _listed(settings) | {CLUSTERS_OWN_SCHEDULER}
    return sorted(requested.keys() - left_out, key=lambda one: (requested[one], one))


def _listed(settings: OperatorSettings) -> frozenset[str]:
    return frozenset(one.name for one in settings.schedulers)


def _unlisted(scheduler: str) -> str:
    return f"{scheduler} is not listed in the operator's setting schedulers"

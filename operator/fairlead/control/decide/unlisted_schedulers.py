"""Which schedulers there may be that no setting lists: policies name them, and whoever writes those need ask nobody.

Pure, and the same whoever leads: one that is there keeps its place, and of the others those come first that were asked
for first.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from fairlead.api.names import CLUSTERS_OWN_SCHEDULER
from fairlead.control.decide.desired import is_leaving, scheduler_of
from fairlead.render.operator_settings import OperatorSettings

_CURE: Final = "list it there, or ask the operator's administrator"


def asked_since(policies: Iterable[Mapping[str, Any]]) -> Mapping[str, str]:
    """The schedulers that policies name which stay, each with when the oldest of these was made."""
    found: dict[str, str] = {}
    for one in policies:
        if not is_leaving(one):
            name, since = scheduler_of(one), one["metadata"].get("creationTimestamp", "")
            found[name] = min(found.get(name, since), since)
    return found


def denial_reason(scheduler: str, settings: OperatorSettings) -> str:
    """Why it may not be there, whether it is or not; empty if it may."""
    if settings.lists(scheduler) or settings.unlisted_schedulers == "Allow":
        return ""
    return f"{_unlisted(scheduler)}, and unlistedSchedulers is Deny: {_CURE}"


def no_room_reason(
    scheduler: str, settings: OperatorSettings, there: Collection[str], asked: Callable[[], Mapping[str, str]]
) -> str:
    """Why it may not begin beside those that are there; empty if it may.

    `asked` says since when each is to begin; it is not called where there is no place anyway.
    """
    listed = _listed(settings)
    if scheduler in listed or scheduler in there:
        return ""
    placed, before, most = sum(one not in listed for one in there), 0, settings.max_unlisted_schedulers
    if placed < most:
        waiting = [one for one in in_order_of_request(asked(), settings) if one not in there]
        before = waiting.index(scheduler) if scheduler in waiting else len(waiting)
    if placed + before < most:
        return ""
    others = f"{placed} unlisted ones exist" + (f", {before} more were requested earlier" if before else "")
    return f"{_unlisted(scheduler)}, and maxUnlistedSchedulers is {most}: {others}; {_CURE}"


def in_order_of_request(asked: Mapping[str, str], settings: OperatorSettings) -> Sequence[str]:
    """Those of them that need a place, as they are to have one."""
    left_out = _listed(settings) | {CLUSTERS_OWN_SCHEDULER}
    return sorted(asked.keys() - left_out, key=lambda one: (asked[one], one))


def _listed(settings: OperatorSettings) -> frozenset[str]:
    return frozenset(one.name for one in settings.schedulers)


def _unlisted(scheduler: str) -> str:
    return f"{scheduler} is not listed in the operator's setting schedulers"

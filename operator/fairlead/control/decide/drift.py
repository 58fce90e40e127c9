"""Drift of our objects: comparison of live objects with the desired ones, and the log of what was corrected.

The comparison is pure, and ignores fields that the API server or others add.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from fairlead.api.names import GROUP
from fairlead.cel.functions.quantity import quantity
from fairlead.cel.values.errors import CelError
from fairlead.render.object_names import Object, digest

LOG: Final = logging.getLogger(__name__)
APPLIED: Final = f"{GROUP}/applied"
_KEYS: Final = ("name", "mountPath", "containerPort", "topologyKey", "port", "key")
"""Merge keys of lists to which others may add items, as in the API's types."""
_ATOMIC: Final = frozenset({"args", "command", "rules", "subjects", "policyTypes", "ingress", "tolerations", "items"})


def to_apply(desired: Object) -> Object:
    """Return the object with a hash of its desired state as an annotation."""
    metadata = desired["metadata"]
    annotations = {
        **metadata.get("annotations", {}),
        APPLIED: digest(msgspec.json.encode(desired, order="sorted").decode()),
    }
    return {**desired, "metadata": {**metadata, "annotations": annotations}}


def compare(desired: Object, live: Mapping[str, Any] | None) -> str:
    """Return `missing`, `changed` (the desired state changed) or `edited` (by others); "" if it is up to date."""
    if live is None:
        return "missing"
    applied = to_apply(desired)
    before = live["metadata"].get("annotations", {}).get(APPLIED)
    if before != applied["metadata"]["annotations"][APPLIED]:
        return "changed"
    return "" if includes(applied, live) else "edited"


def must_recreate(desired: Object, live: Mapping[str, Any]) -> bool:
    """Return whether an immutable field differs: someone replaced our object, so it must be deleted and recreated."""
    if live.get("immutable") and desired.get("data") != live.get("data"):
        return True
    if desired["kind"] == "Deployment":
        return bool(desired["spec"]["selector"] != live["spec"]["selector"])
    return bool(desired.get("roleRef") != live.get("roleRef"))


def includes(desired: Any, live: Any, field: str = "") -> bool:
    """Return whether a live value has everything that is desired."""
    if isinstance(desired, Mapping):
        return isinstance(live, Mapping) and all(_holds_field(key, one, live) for key, one in desired.items())
    if isinstance(desired, Sequence) and not isinstance(desired, str):
        return isinstance(live, Sequence) and _holds_list(desired, live, field)
    return bool(desired == live) or _same_amount(desired, live)


def _holds_field(key: str, desired: Any, live: Mapping[str, Any]) -> bool:
    if key in live:
        return includes(desired, live[key], key)
    return not desired and desired is not False and not isinstance(desired, int)  # the API omits empty values


def _holds_list(desired: Sequence[Any], live: Sequence[Any], field: str) -> bool:
    key = None if field in _ATOMIC else next((key for key in _KEYS if all(_has(one, key) for one in desired)), None)
    if key is None or not desired:
        return len(desired) == len(live) and all(includes(one, other) for one, other in zip(desired, live, strict=True))
    by_key = {one[key]: one for one in live if _has(one, key)}
    return all(includes(one, by_key.get(one[key])) for one in desired)


def _has(value: Any, key: str) -> bool:
    return isinstance(value, Mapping) and key in value


def _same_amount(desired: Any, live: Any) -> bool:
    """Return whether two texts are equal quantities: the API writes 0.5 as 500m, and 1024Mi as 1Gi."""
    if not (isinstance(desired, str) and isinstance(live, str)):
        return False
    try:
        return quantity(desired) == quantity(live)
    except CelError:
        return False


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift of one of our objects: others changed or deleted it."""

    scheduler: str
    """Scheduler that the object belongs to; "" if all share it."""
    kind: str
    message: str
    """Names the object and its state."""


@dataclass(slots=True, eq=False)
class DriftLog:
    """Log of one leader: what was corrected before a failure is not lost with it.

    A reconcile may record the drift of other schedulers, too.
    """

    _drifts: list[Drift] = field(default_factory=list)

    def record(self, drift: Drift) -> None:
        """Log drift that was corrected, and keep it until it is reported."""
        LOG.warning("drift.corrected", extra={"scheduler": drift.scheduler, "drift": drift.message})
        self._drifts.append(drift)

    def take(self) -> Sequence[Drift]:
        """Return what is to be reported, each only once."""
        taken, self._drifts = self._drifts, []
        return taken

"""Metrics of grants and devices. What nodes have is surveyed from time to time, not when metrics are scraped."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from fairlead.grants.ledger import Ledger
from fairlead.logs import FaultError
from fairlead.metrics import Counter, Labels, Metrics
from fairlead.mirror.device_report import NamedShares, ReportData, node_report, sum_of
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import shares_in_force
from fairlead.policy.views.node_view import NodeView
from fairlead.webhook.binding.api_calls import Conflicting, WriteFailure
from fairlead.webhook.binding.mirror_views import MirrorViews

LOG: Final = logging.getLogger(__name__)
SURVEY_S: Final = 15.0
_NODES: Final = 16
"""Nodes that are surveyed between two pauses."""


class GrantCounters:
    """Counters of binds with grants, and of writes to ledgers."""

    def __init__(self) -> None:
        self._binds = Counter(
            "fairlead_device_binds",
            "Binds of pods that request devices, by the result: granted or refused.",
            ("result",),
        )
        self._writes = Counter("fairlead_ledger_writes", "Writes to ledgers that succeeded.")
        self._conflicts = Counter(
            "fairlead_ledger_conflicts", "Writes to ledgers that lost against an earlier one; they are decided again."
        )

    def register(self, metrics: Metrics) -> None:
        """Register the counters."""
        metrics.add(self._binds, self._writes, self._conflicts)

    def count_bind(self, granted: bool) -> None:  # noqa: FBT001 - it is a callback's one argument
        """Count a bind."""
        self._binds.add("granted" if granted else "refused")

    def wrote(self, outcome: Ledger | WriteFailure) -> None:
        """Count a write to a ledger."""
        if isinstance(outcome, Ledger):
            self._writes.add()
        elif isinstance(outcome, Conflicting):
            self._conflicts.add()


class _Surveyed(NamedTuple):
    """Counts of a node, and what they were taken of."""

    view: NodeView
    ledger: Ledger | None
    has_devices: bool = False
    totals: Sequence[ReportData] = ()
    foreign: Sequence[str] = ()
    """The resource of each foreign pod."""
    differing: int = 0
    unreadable: int = 0


class DeviceSurvey:
    """Survey of the devices of all nodes, as this process knows them."""

    def __init__(self, mirror: Mirror, views: MirrorViews, policies: Callable[[], Iterable[CompiledPolicy]]) -> None:
        self._mirror, self._views, self._policies = mirror, views, policies
        self.totals: list[ReportData] = []
        self._nodes: list[ReportData] = []
        self._shares: NamedShares = ()
        self._known: dict[str, _Surveyed] = {}
        self._foreign: dict[Labels, float] = {}
        self._differing: dict[Labels, float] = {}
        self._unreadable: dict[Labels, float] = {}

    async def run(self) -> None:
        """Take the survey now and then, until cancelled."""
        while True:
            await self.take()
            await asyncio.sleep(SURVEY_S)

    async def take(self) -> None:
        """Look at all nodes, and pause in between."""
        shares = shares_in_force(self._policies())
        if shares != self._shares:
            self._shares, self._known = shares, {}
        known, foreign = dict[str, _Surveyed](), dict[Labels, float]()
        has_failed = False
        for at, name in enumerate([*self._mirror.nodes.slots] if shares else ()):
            if at % _NODES == 0:
                await asyncio.sleep(0)
            try:
                found = self._survey(name)
            except Exception as error:  # nothing that a node says may end the replica
                if not has_failed:
                    LOG.exception("devices.fault", exc_info=FaultError(error), extra={"nodes": [name]})
                has_failed = True
                continue
            if found is not None:
                known[name] = found
        surveyed = {name: one for name, one in known.items() if one.has_devices}
        self._known = known
        self._nodes = [{"node": name, "totals": one.totals} for name, one in surveyed.items()]
        self.totals = sum_of(total for one in surveyed.values() for total in one.totals)
        for one in surveyed.values():
            for resource in one.foreign:
                foreign[resource,] = foreign.get((resource,), 0) + 1
        self._foreign = {(one["resource"],): foreign.get((one["resource"],), 0) for one in self.totals}
        self._differing = {(): sum(one.differing for one in surveyed.values())} if shares else {}
        self._unreadable = {(): sum(one.unreadable for one in surveyed.values())} if shares else {}

    def _survey(self, node: str) -> "_Surveyed | None":
        """Return what there is to count of a node, from the last survey if nothing has changed since."""
        view, ledger = self._mirror.nodes.view_of(node), self._views.ledger(node)
        known = self._known.get(node)
        if view is None or (known is not None and known.view is view and known.ledger is ledger):
            return known if view is not None else None
        found = self._report(node, self._shares)
        if found is None:
            return _Surveyed(view, ledger)
        return _Surveyed(
            view,
            ledger,
            has_devices=True,
            totals=found["totals"],
            foreign=[one["resource"] for one in found["foreignPods"]],
            differing=len(found["differingAnnotations"]),
            unreadable=len(found["unreadableEntries"]) + len(found["newerEntries"]),
        )

    def page(self, node: str) -> ReportData | None:
        """Return what `fairlead devices` tells of a node, or if it is empty the totals that the last survey found.

        None for a node that is not known, or has no devices that a policy shares.
        """
        if not node:
            return {"nodes": self._nodes, "totals": self.totals}
        found = self._report(node, shares_in_force(self._policies()))
        return None if found is None else {"nodes": [found], "totals": found["totals"]}

    def _report(self, node: str, shares: NamedShares) -> ReportData | None:
        if (view := self._mirror.nodes.view_of(node)) is None:
            return None
        return node_report(view, self._mirror.placed_on(node), self._views.ledger(node), shares)

    def register(self, metrics: Metrics) -> None:
        """Register the gauges, which tell what the last survey found."""

        def of(key: str) -> Callable[[], Mapping[Labels, float]]:
            return lambda: {(one["resource"],): one[key] for one in self.totals}

        for key, name, text in (
            ("capacity", "fairlead_device_capacity", "Capacity of the devices of all nodes, by resource."),
            ("granted", "fairlead_device_granted", "Amount that is granted on devices, by resource."),
            ("free", "fairlead_device_free", "Amount that is free on healthy devices, by resource."),
            ("largestFree", "fairlead_device_largest_free", "Largest amount that is free on one device, by resource."),
        ):
            metrics.gauge(name, text, "resource", ask=of(key))
        metrics.gauge(
            "fairlead_device_foreign_pods",
            "Placed pods that request a resource of devices and were granted none of it, so every device is charged.",
            "resource",
            ask=lambda: self._foreign,
        )
        metrics.gauge(
            "fairlead_device_differing_annotations",
            "Placed pods whose annotations name other devices than the ledger.",
            ask=lambda: self._differing,
        )
        metrics.gauge(
            "fairlead_ledger_unreadable_entries",
            "Entries of ledgers that this version of Fairlead cannot read.",
            ask=lambda: self._unreadable,
        )

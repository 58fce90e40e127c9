"""Mutations of the core, each of which breaks one of the rules that the promise stands on. The explorer finds them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import pytest
from msgspec.structs import replace

from fairlead.grants import commit, entry_state
from fairlead.grants.commit import GrantRequest, LedgerPlan, NodeInventory, plan
from fairlead.grants.device_usage import DeviceUsage
from fairlead.grants.entry import AnyEntry, LedgerEntry, NewerEntry
from fairlead.grants.entry_state import EntryState, Gone, PodState, judge, judge_listed
from fairlead.grants.ledger import Ledger, merge_patch
from fairlead.webhook.binding import bind_steps, ledger_writer
from fairlead.webhook.binding.api_calls import Failed
from fairlead.webhook.binding.bind_steps import Committed, PodBind

Mutate = Callable[[pytest.MonkeyPatch], None]


def no_resource_version(patch: pytest.MonkeyPatch) -> None:
    """Write the ledger without a word of the version that was read."""

    def without(ledger: Ledger, put: Mapping[str, LedgerEntry], drop: Any) -> dict[str, Any]:
        return {**merge_patch(ledger, put, drop), "metadata": {}}

    patch.setattr(commit, "merge_patch", without)


def entry_dropped_on_time_out(patch: pytest.MonkeyPatch) -> None:
    """Take a Binding for failed once its time is over, at the replica that gave it up."""
    real = ledger_writer._OneLedger._state_of

    def impatient(self: Any, uid: str, entry: AnyEntry) -> EntryState:
        if isinstance(entry, LedgerEntry) and (uid, entry.rv) in self._views.timed_out:
            return EntryState.POD_CHANGED
        return real(self, uid, entry)

    patch.setattr(ledger_writer._OneLedger, "_state_of", impatient)


def gone_by_the_mirror(patch: pytest.MonkeyPatch) -> None:
    """Take a pod for gone that the mirror does not show."""

    def hasty(uid: str, entry: AnyEntry, node: str | None, seen: PodState | Gone | None) -> EntryState:
        return EntryState.POD_GONE if seen is None else judge(uid, entry, node, seen)

    patch.setattr(ledger_writer, "judge", hasty)


def over_by_inequality(patch: pytest.MonkeyPatch) -> None:
    """Take any other version of a pod for a newer one."""
    patch.setattr(entry_state, "is_newer", lambda version, than: version != than)


def checked_before_the_newest(patch: pytest.MonkeyPatch) -> None:
    """Choose devices by the version known before, and name the newest one in the write."""
    before = WeakKeyDictionary[object, Ledger]()
    real, running = ledger_writer._OneLedger._round, list[Any]()

    async def noted(self: Any) -> None:
        running[:] = [self]  # it plans before it waits for anything
        await real(self)

    def early(
        ledger: Ledger, requests: Sequence[GrantRequest], facts: NodeInventory, _states: Mapping[str, EntryState]
    ) -> LedgerPlan:
        (writer,) = running
        checked = before.get(writer, ledger)
        before[writer] = ledger
        states = {uid: writer._state_of(uid, entry) for uid, entry in checked.all.items()}
        return replace(plan(checked, requests, facts, states), ledger=ledger)

    patch.setattr(ledger_writer._OneLedger, "_round", noted)
    patch.setattr(ledger_writer, "plan", early)


def another_uid_of_any_age(patch: pytest.MonkeyPatch) -> None:
    """Take a pod for gone as soon as a view shows another one under its name, which may be the one before it."""

    def hasty(uid: str, entry: AnyEntry, node: str | None, seen: PodState | Gone | None) -> EntryState:
        another = isinstance(seen, PodState) and seen.uid != uid
        return EntryState.POD_GONE if another else judge(uid, entry, node, seen)

    patch.setattr(ledger_writer, "judge", hasty)


def binding_of_any_version(patch: pytest.MonkeyPatch) -> None:
    """Post Bindings that name no version of the pod."""
    real = bind_steps.committed_binding

    def without(call: PodBind, committed: Committed) -> dict[str, Any]:
        made = real(call, committed)
        del made["metadata"]["resourceVersion"]
        return made

    patch.setattr(bind_steps, "committed_binding", without)


def choice_is_trusted(patch: pytest.MonkeyPatch) -> None:
    """Write what was chosen without checking it."""
    patch.setattr(DeviceUsage, "find_shortage", lambda _self, _grant: None)


def lists_in_the_other_order(patch: pytest.MonkeyPatch) -> None:
    """List the pods on the node before the unplaced ones: one that is bound in between is in neither list."""

    async def swapped(self: Any, unread: Mapping[str, AnyEntry], left_s: float) -> Mapping[str, EntryState]:
        here = await self._server.list_pods(self._subject, left_s)
        unplaced = await self._server.list_unplaced(left_s)
        if isinstance(unplaced, Failed) or isinstance(here, Failed):
            return {}
        lists = [{one.uid: one for one in pods} for pods in (unplaced, here)]
        return {uid: judge_listed(uid, entry, self._node, *lists) for uid, entry in unread.items()}

    patch.setattr(ledger_writer._OneLedger, "_list_all", swapped)


def newer_entries_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """Grant beside what a newer version has promised."""
    real = ledger_writer._OneLedger._state_of

    def careless(self: Any, uid: str, entry: AnyEntry) -> EntryState:
        return EntryState.POD_GONE if isinstance(entry, NewerEntry) else real(self, uid, entry)

    patch.setattr(ledger_writer._OneLedger, "_state_of", careless)


MUTATIONS: Final[Sequence[Mutate]] = (
    no_resource_version,
    entry_dropped_on_time_out,
    gone_by_the_mirror,
    over_by_inequality,
    checked_before_the_newest,
    another_uid_of_any_age,
    binding_of_any_version,
    choice_is_trusted,
    lists_in_the_other_order,
    newer_entries_do_not_count,
)

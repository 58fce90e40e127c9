"""A replica: the real core, with views of any age, and an API server whose replies come when they are told to."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fairlead.grants.commit import NodeInventory, Refused
from fairlead.grants.device_usage import Ask, DeviceAsk, DeviceUsage
from fairlead.grants.entry import COPY, Grant, GrantedDevice, LedgerEntry
from fairlead.grants.entry_state import GONE, EntryState, Gone, PodState, judge, judge_read
from fairlead.grants.ledger import Ledger, delete_body
from fairlead.webhook.binding.api_calls import Failed, Missing, Posted, Uncertain, WriteFailure
from fairlead.webhook.binding.bind_steps import BindResult, BindSteps, Budget, PodBind, PodDevices
from fairlead.webhook.binding.ledger_writer import LedgerWriter
from fairlead.webhook.binding.poster import Poster
from support.grants.api_server import ApiServer
from support.grants.step_loop import StepLoop

RESOURCE: Final = "example.org/gpu-mem"
DEVICES: Final = "example.org/gpu-count"
KIND: Final = "gpu"
_READS: Final = ("read_pod", "read_ledger", "list_pods", "list_unplaced", "read_body")


class Sent:
    """A request on its way: not carried out yet, or carried out and not answered."""

    __slots__ = ("args", "carried_out", "future", "outcome", "owner", "verb")

    def __init__(self, owner: "Replica", verb: str, args: tuple[Any, ...]) -> None:
        self.owner, self.verb, self.args = owner, verb, args
        self.future = owner.loop.create_future()
        self.carried_out = False
        self.outcome: Any = None

    @property
    def answered(self) -> bool:
        return self.owner.loop.dead or self.future.done()

    def carry_out(self, server: ApiServer) -> None:
        self.outcome = getattr(server, self.verb)(*self.args)
        self.carried_out = True

    def answer(self, outcome: Any) -> None:
        if not self.answered:
            self.future.set_result(outcome)
            self.owner.loop.run_ready()

    def give_up(self) -> None:
        """Time out at the caller; the request itself may still arrive."""
        if not self.answered and self.verb == "post_binding":
            metadata = self.args[0]["metadata"]
            self.owner.views.timed_out.add((metadata["uid"], metadata.get("resourceVersion", "")))
        self.answer(Failed("timed out") if self.verb in _READS else Uncertain("timed out"))

    def __str__(self) -> str:
        return f"{self.owner.name}: {self.verb} {', '.join(map(_shown, self.args))}"


def _shown(value: Any) -> str:
    match value:
        case {"data": data, "metadata": metadata}:
            return f"at {metadata.get('resourceVersion')}: {data}"
        case {"target": target, "metadata": metadata}:
            named = f"{metadata['uid']} at {metadata.get('resourceVersion')}"
            return f"{named} to {target['name']} with {metadata.get('annotations', {}).get(COPY)}"
    return str(value)


class Calls:
    """Calls of a replica: each waits until the explorer answers it."""

    def __init__(self, owner: "Replica", sent: list[Sent]) -> None:
        self._owner, self._sent = owner, sent

    async def _call(self, verb: str, *args: Any) -> Any:
        self._sent.append(one := Sent(self._owner, verb, args))
        return await one.future

    async def read_pod(self, pod: str, timeout_s: float) -> PodState | Gone | Failed:
        return await self._call("read_pod", pod)  # type: ignore[no-any-return]

    async def read_ledger(self, node: str, timeout_s: float) -> Ledger | Missing | Failed:
        return await self._call("read_ledger", node)  # type: ignore[no-any-return]

    async def list_pods(self, node: str, timeout_s: float) -> Sequence[PodState] | Failed:
        return await self._call("list_pods", node)  # type: ignore[no-any-return]

    async def list_unplaced(self, timeout_s: float) -> Sequence[PodState] | Failed:
        return await self._call("list_unplaced")  # type: ignore[no-any-return]

    async def create_ledger(self, body: Mapping[str, Any], timeout_s: float) -> Ledger | WriteFailure:
        return await self._call("create_ledger", body)  # type: ignore[no-any-return]

    async def patch_ledger(self, node: str, patch: Mapping[str, Any], timeout_s: float) -> Ledger | WriteFailure:
        return await self._call("patch_ledger", node, patch)  # type: ignore[no-any-return]

    async def read_body(self, namespace: str, name: str, timeout_s: float) -> bytes | Missing | Failed:
        raise AssertionError("a bind with grants reads states of pods")

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted | WriteFailure:
        return await self._call("post_binding", binding)  # type: ignore[no-any-return]

    async def delete_ledger(self, node: str, body: Mapping[str, Any]) -> Posted | WriteFailure:
        return await self._call("delete_ledger", node, body)  # type: ignore[no-any-return]


class AgedViews:
    """Views as watches fill them: they begin at some version, and only move forward."""

    def __init__(self, server: ApiServer, pods_at: int, ledgers_at: int) -> None:
        self._server = server
        self.pods_at, self.ledgers_at = pods_at, ledgers_at
        self._gone = set[str]()
        self.timed_out = set[tuple[str, str]]()
        """UID and version of Bindings that this replica has given up, for the mutation that believes in time."""

    def advance_pods(self, steps: int) -> None:
        history = self._server.pod_history
        for _ in range(min(steps, len(history) - 1 - self.pods_at)):
            before, after = history[self.pods_at], history[self.pods_at + 1]
            self._gone |= {one.uid for one in before.values()} - {one.uid for one in after.values()}
            self.pods_at += 1

    def advance_ledgers(self, steps: int) -> None:
        self.ledgers_at = min(self.ledgers_at + steps, len(self._server.ledger_history) - 1)

    def ledger(self, node: str) -> Ledger | None:
        found = self._server.ledger_history[self.ledgers_at].get(node)
        return found if found is not None and found.marked else None

    def pod(self, pod: str) -> PodState | None:
        return self._server.pod_history[self.pods_at].get(pod)

    def seen(self, uid: str, pod: str) -> PodState | Gone | None:
        return GONE if uid in self._gone else self.pod(pod)

    def facts(self, node: str) -> NodeInventory:
        shown = self._server.pod_history[self.pods_at].values()
        return NodeInventory(self._server.capacity[node], [one for one in shown if one.node == node and not one.ended])


READS_MAX: Final = (0, 1, 16)
"""Pods that are read one by one, of three replicas: the first one lists all, the last one never does."""
Pick = Callable[[Sequence[str], DeviceUsage], str]
PICKS: Final[Sequence[Pick]] = (
    lambda fitting, _room: fitting[0],
    lambda fitting, _room: fitting[-1],
    lambda fitting, room: min(fitting, key=lambda one: room.free(RESOURCE, one)),
)


class Replica:
    """One writer, from its start to its crash."""

    def __init__(self, name: str, server: ApiServer, sent: list[Sent], pods_at: int, ledgers_at: int) -> None:
        self.name, self.server = name, server
        self.loop = StepLoop()  # type: ignore[abstract]  # what the core uses is there
        self.views = AgedViews(server, pods_at, ledgers_at)
        self.calls = Calls(self, sent)
        self.ledgers = LedgerWriter(self.calls, self.views, READS_MAX[ord(name) % len(READS_MAX)])
        self.steps = BindSteps(self.ledgers, self.calls, self.views)
        self.pick: Pick = PICKS[ord(name) % len(PICKS)]
        self.lies = False
        self.running: list[Call] = []

    def advance_ledgers(self, steps: int) -> None:
        """Have the watch of ledgers show more."""
        self.views.advance_ledgers(steps)
        for subject in self.server.ledger_history[self.views.ledgers_at]:
            for writer in (self.ledgers, self.steps.domains):
                if writer is not None:
                    writer.drop_shown(subject)

    def tasks(self) -> list[asyncio.Task[Any]]:
        return [one.task for one in self.running]

    def pod_bind(self, pod: PodState, node: str, poster: Poster) -> PodBind:
        """Return what is asked for a pod."""
        return PodBind(pod.uid, pod.pod, node, PickedDevices(self, pod), poster)

    def start_bind(self, pod: PodState, node: str) -> "Call":
        call = Call(self, pod, node)
        self.running.append(call)
        self.loop.run_ready()
        return call

    def start_end(self, node: str) -> None:
        """Delete the ledger of a node that is gone, if it may be."""
        self.loop.create_task(self._end(node))
        self.loop.run_ready()

    async def _end(self, node: str) -> None:
        is_needed = node not in self.server.gone_nodes
        ledger = await self.calls.read_ledger(node, 1)
        if not isinstance(ledger, Ledger):
            return
        over = set[str]()
        place = ledger.kind.node(node)
        for uid, entry in ledger.all.items():
            state = judge(uid, entry, place, self.views.seen(uid, entry.pod))
            if state is EntryState.UNCLEAR and entry.pod:
                found = await self.calls.read_pod(entry.pod, 1)
                state = state if isinstance(found, Failed) else judge_read(uid, entry, place, found)
            if state.is_over:
                over.add(uid)
        if (body := delete_body(ledger, over, is_needed=is_needed)) is not None:
            await self.calls.delete_ledger(node, body)

    def choose(self, ask: Ask, room: DeviceUsage) -> Grant | Refused:
        amount = ask[0].each[RESOURCE]
        fitting = [one for one in room.capacity[RESOURCE] if self.lies or room.free(RESOURCE, one) >= amount]
        if len(fitting) < ask[0].devices:
            return Refused("no device free")
        first = self.pick(fitting, room)
        chosen = [first, *(one for one in fitting if one != first)][: ask[0].devices]
        return {KIND: tuple(GrantedDevice(one, ask[0].each) for one in chosen)}


class PickedDevices(PodDevices):
    """Devices that a replica picks for a pod."""

    def __init__(self, replica: Replica, pod: PodState) -> None:
        self._replica, self._ask = replica, ask_of(pod)

    @property
    def by(self) -> str:
        return self._replica.name

    @property
    def ask(self) -> Ask:
        return self._ask

    def choose(self, usage: DeviceUsage, _entries: Mapping[str, LedgerEntry], /) -> Grant | Refused:
        return self._replica.choose(self._ask, usage)

    def is_for(self, _state: PodState, /) -> bool:
        return True

    def annotations(self, _entry: LedgerEntry | None, /) -> Mapping[str, str]:
        return {}


class Call:
    """A bind call that runs."""

    def __init__(self, replica: Replica, pod: PodState, node: str) -> None:
        self.has_hung_up = False
        self.pod, self.node = pod, node
        poster = Poster(replica.calls, is_abandoned=lambda: self.has_hung_up)
        call = replica.pod_bind(pod, node, poster)
        budget = Budget(lambda: 0.0, 8.0)
        self.task = replica.loop.create_task(replica.steps.bind(call, budget))

    @property
    def result(self) -> BindResult | None:
        return self.task.result() if self.task.done() and not self.task.cancelled() else None


def ask_of(pod: PodState) -> Ask:
    """Pods ask for one device, but for those of which each unit is to be on another one."""
    if not pod.request:
        return ()
    amount = pod.request[RESOURCE]
    if (devices := pod.request.get(DEVICES, 1)) == 1:
        return (DeviceAsk(KIND, 1, {RESOURCE: amount}),)
    return (DeviceAsk(KIND, devices, {RESOURCE: amount // devices}),)

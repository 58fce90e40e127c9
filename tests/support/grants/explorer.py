"""Interleavings of replicas that grant devices, of schedulers, kubelets and the network between them."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from fairlead.grants.entry_state import PodState
from fairlead.grants.ledger import create_body
from fairlead.webhook.binding.bind_steps import Bound
from support.grants.api_server import ApiServer, StuckError
from support.grants.network_case import NetworkCase
from support.grants.replica import DEVICES, RESOURCE, Call, Replica
from support.interleavings import Explorer

STEPS: Final = 90
NODES: Final = ("node-1", "node-2")
PODS: Final = ("ns/a", "ns/b", "ns/c")
WRITERS: Final = ("A", "B", "C")
_CALLS_MAX: Final = 6
_AMOUNTS: Final = (4, 5, 6, 10)
_BITS: Final = 48

Step = Callable[["Case"], None]


class Case(NetworkCase):
    """One interleaving, as far as it has come."""

    def __init__(self, setup: int, trace: list[str] | None = None) -> None:
        super().__init__(setup, trace)
        self.nodes: Sequence[str] = NODES
        self.prepare()
        newest = len(self.server.pod_history) - 1
        self.replicas = [self.replica(name, newest, 0) for name in WRITERS]
        self.replicas[0].lies = self.draw(4) == 0

    def prepare(self) -> None:
        """Draw the cluster that the case begins with."""
        devices = 1 + self.draw(3)
        capacity = {RESOURCE: {str(one): 10 for one in range(devices)}}
        self.server = ApiServer(dict.fromkeys(NODES, capacity), numbers=self.draw(6) > 0)
        self.requests = {pod: {RESOURCE: _AMOUNTS[self.draw(len(_AMOUNTS))]} for pod in PODS}
        if devices > 1 and self.draw(3) == 0:
            self.requests[PODS[0]][DEVICES] = 2
        for pod in PODS:
            self.server.create_pod(pod, self.requests[pod])
        for node in NODES[: self.draw(3)]:
            self.server.create_ledger(create_body(node, {}))
        self.forgets = self.draw(4) == 0
        self.tampers = self.draw(4) == 0

    def replica(self, name: str, pods_at: int, ledgers_at: int) -> Replica:
        """Start a replica."""
        return Replica(name, self.server, self.sent, pods_at, ledgers_at)

    def step(self, number: int) -> None:
        self.number = number
        _STEPS[self.draw(len(_STEPS))](self)

    def has_room(self, _replica: Replica, pod: PodState, node: str) -> bool:
        """Return whether a pod that is on no node can be bound to this one."""
        amount, devices = pod.request[RESOURCE], pod.request.get(DEVICES, 1)
        room = self.server.room(node)
        return sum(room.free(RESOURCE, one) >= amount // devices for one in room.capacity[RESOURCE]) >= devices

    # what schedulers do

    def bind(self) -> None:
        replica = self.one_of(self.replicas)
        pod = PODS[self.draw(len(PODS))]
        # Mostly the pod that is there, sometimes one that its scheduler has not heard of being gone.
        history = self.server.pod_history
        known = history[-1 - self.draw(min(4, len(history)))] if self.draw(4) == 0 else history[-1]
        calls = sum(1 for one in self.replicas for call in one.running if not call.task.done())
        if (found := known.get(pod)) is None or calls >= _CALLS_MAX:
            return
        # Calls for one node meet more often than they would by chance.
        node = self.nodes[max(0, self.draw(len(self.nodes) + 1) - 1)]
        replica.start_bind(found, node)
        self.tell(lambda: f"{replica.name} is asked to bind {found.uid} to {node}")

    def hang_up(self) -> None:
        replica = self.one_of(self.replicas)
        calls = [one for one in replica.running if not one.task.done()]
        if not calls:
            return
        call = calls[self.draw(len(calls))]
        call.has_hung_up = True
        if self.draw(2):
            call.task.cancel()
            replica.loop.run_ready()
        self.tell(lambda: f"the caller of {replica.name} for {call.pod.uid} hangs up")

    def failure_patch(self) -> None:
        waiting = [one for one in self.server.pods.values() if not one.node]
        if not waiting:
            return
        pod = waiting[self.draw(len(waiting))]
        self.server.change_pod(pod.pod)
        self.tell(lambda: f"a scheduler patches the status of {pod.uid}: version {self.server.pods[pod.pod].rv}")

    # what happens to pods and nodes

    def kubelet(self) -> None:
        placed = [one for one in self.server.pods.values() if one.node and not one.ended]
        if not placed:
            return
        pod = placed[self.draw(len(placed))]
        self.server.change_pod(pod.pod, ended=self.draw(3) == 0)
        self.tell(lambda: f"kubelet reports {pod.uid}, ended: {self.server.pods[pod.pod].ended}")

    def delete_or_create(self) -> None:
        pod = PODS[self.draw(len(PODS))]
        if (found := self.server.pods.get(pod)) is None:
            self.server.create_pod(pod, self.requests[pod])
            self.tell(lambda: f"{self.server.pods[pod].uid} is created")
            return
        if self.draw(2):
            return
        self.server.delete_pod(pod)
        self.tell(lambda: f"{found.uid} is deleted")

    def node_leaves_or_comes(self) -> None:
        node = self.nodes[self.draw(len(self.nodes))]
        self.server.gone_nodes ^= {node}
        self.tell(lambda: f"{node} {'leaves' if node in self.server.gone_nodes else 'comes'}")

    # what replicas are like

    def timer(self) -> None:
        replica = self.one_of(self.replicas)
        if not replica.loop.timers:
            return
        replica.loop.fire(replica.loop.timers[self.draw(len(replica.loop.timers))])
        replica.loop.run_ready()
        self.tell(lambda: f"a timer of {replica.name} fires")

    def see_pods(self) -> None:
        replica = self.one_of(self.replicas)
        replica.views.advance_pods(1 + self.draw(8))
        self.tell(lambda: f"{replica.name} sees pods at {replica.views.pods_at} of {len(self.server.pod_history) - 1}")

    def see_ledgers(self) -> None:
        replica = self.one_of(self.replicas)
        replica.advance_ledgers(1 + self.draw(4))
        self.tell(
            lambda: (
                f"{replica.name} sees ledgers at {replica.views.ledgers_at} of {len(self.server.ledger_history) - 1}"
            )
        )

    def crash(self) -> None:
        at = self.draw(len(self.replicas))
        killed = self.replicas[at]
        killed.loop.stop_dead()
        self.sent[:] = [one for one in self.sent if not (one.owner is killed and one.carried_out)]
        pods_at = self.draw(len(self.server.pod_history))
        ledgers_at = self.draw(len(self.server.ledger_history))
        self.replicas[at] = self.replica(killed.name, pods_at, ledgers_at)
        self.replicas[at].lies = killed.lies
        self.tell(lambda: f"{killed.name} is killed, and starts with pods at {pods_at}, ledgers at {ledgers_at}")

    def end_ledger(self) -> None:
        if not self.server.gone_nodes:
            return
        replica, node = self.one_of(self.replicas), min(self.server.gone_nodes)
        replica.start_end(node)
        self.tell(lambda: f"{replica.name} would delete the ledger of {node}")

    def tamper(self) -> None:
        """Let a person, or another version, write in a ledger, or take away what watches find it by."""
        ledgers = [one for one in self.server.ledgers.values() if one.entries]
        if not self.tampers or not ledgers:
            return
        ledger = ledgers[self.draw(len(ledgers))]
        uid, entry = [*ledger.entries.items()][self.draw(len(ledger.entries))]
        how = self.draw(6)
        if how == 0:
            self.server.unmark_ledger(ledger.subject)
            self.tell(lambda: f"the ledger of {ledger.subject} loses its label")
            return
        names = {"pod": entry.pod, "rv": entry.rv}
        texts = (json.dumps({"v": 2, **names}), '{"v": 3}', json.dumps({"v": 1, **names}), "what?", "{}")
        self.server.tamper(ledger.subject, uid, texts[how - 1])
        self.tell(lambda: f"in the ledger of {ledger.subject} {uid} becomes {texts[how - 1]}")


_WEIGHTS: Final[dict[Step, int]] = {
    Case.bind: 12,
    Case.hang_up: 1,
    Case.failure_patch: 7,
    Case.kubelet: 3,
    Case.delete_or_create: 6,
    Case.node_leaves_or_comes: 1,
    Case.serve: 40,
    Case.land: 5,
    Case.time_out: 6,
    Case.lose: 1,
    Case.timer: 1,
    Case.see_pods: 9,
    Case.see_ledgers: 4,
    Case.crash: 2,
    Case.end_ledger: 2,
    Case.tamper: 2,
}
_STEPS: Final[list[Step]] = [step for step, weight in _WEIGHTS.items() for _ in range(weight)]


def run_case(numbers: Sequence[int], seen: Counter[str], trace: list[str] | None = None) -> None:
    """Run a case and then, without faults, see that what is free can be granted."""
    run(Case(numbers[0], trace), numbers, seen)


def run(case: Case, numbers: Sequence[int], seen: Counter[str]) -> None:
    """Run a case of any kind."""
    for number in numbers[1:]:
        case.step(number)
    case.check_replicas()
    quieten(case)
    case.check_replicas()
    seen.update(case.seen)
    seen["bindings"] += case.server.bindings


def quieten(case: Case) -> None:
    """Let everything arrive, and bind each pod that is left: it finds room if there is any."""
    server, replica = case.server, case.replicas[0]
    case.number = 0
    for _ in range(1000):
        if not case.sent:
            break
        case.serve()
    else:
        raise StuckError("requests follow each other without end")
    case.tell(lambda: "from here on nothing goes wrong")
    replica.lies = False
    for pod in list(server.pods.values()):
        if not pod.node:
            server.change_pod(pod.pod)
    _end_what_was_tampered_with(server)
    if case.forgets:
        for node in sorted(server.ledgers):
            server.lost.add(node)
            server.remove_ledger(node)
            case.tell(lambda node=node: f"the ledger of {node} is deleted by hand")  # type: ignore[misc]
    replica.views.advance_pods(len(server.pod_history))
    for pod in list(server.pods.values()):
        for node in case.nodes:
            if not server.pods[pod.pod].node:
                _bind_in_peace(case, replica, pod.pod, node)


def _end_what_was_tampered_with(server: ApiServer) -> None:
    """Delete the pods that their entries would hold for ever: what is left of them has to be seen as over."""
    for ledger in server.ledgers.values():
        for pod in list(server.pods.values()):
            newer, node = ledger.newer.get(pod.uid), ledger.kind.node(ledger.subject)
            is_held = newer is not None and ((pod.node and node in (None, pod.node)) or not (newer.rv or pod.node))
            if is_held or pod.uid in ledger.unreadable:
                server.delete_pod(pod.pod)


def _bind_in_peace(case: Case, replica: Replica, pod: str, node: str) -> None:
    state = case.server.pods[pod]
    want = case.has_room(replica, state, node)
    call: Call = replica.start_bind(state, node)
    for _ in range(100):
        if call.task.done():
            break
        case.serve()
    if isinstance(call.result, Bound) != want:
        raise StuckError(f"{state.uid} on {node}: {call.result}, though it has {'' if want else 'no '}room there")
    if not isinstance(call.result, Bound):
        case.server.change_pod(pod)
    replica.views.advance_pods(len(case.server.pod_history))
    case.seen["bound in the end" if isinstance(call.result, Bound) else "refused in the end"] += 1


EXPLORER: Final = Explorer(run_case, STEPS, _BITS)

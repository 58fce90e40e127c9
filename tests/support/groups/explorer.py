"""Interleavings of replicas that hold the bind calls of groups, of schedulers, and of the network between them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from fairlead.grants.entry_state import Gone
from fairlead.webhook.extender import replies
from support.grants.api_server import StuckError
from support.grants.network_case import NetworkCase
from support.grants.replica import RESOURCE
from support.groups.members import MemberServer, MemberState
from support.groups.replica import HoldingReplica, Hop, SchedulersCall, ServedCall
from support.interleavings import Explorer, PromiseBrokenError

STEPS: Final = 40
NODES: Final = ("node-1", "node-2")
REPLICAS: Final = ("A", "B")
ADDRESSES: Final = ("S1", "S2")
_BITS: Final = 48
_CALLS_MAX: Final = 8
_WAITS_S: Final = (0.2, 1, 5, 11, 31)
_CARDS: Final = 2
_SECOND: Final = 10**9
_IN_PEACE: Final = 10
"""Cases of which one is followed to its end, which takes longer than all of its steps."""

Step = Callable[["GroupsCase"], None]


class GroupsCase(NetworkCase):
    """One interleaving, as far as it has come."""

    server: MemberServer
    replicas: list[HoldingReplica]

    def __init__(self, setup: int, trace: list[str] | None = None) -> None:
        super().__init__(setup, trace)
        capacity = {RESOURCE: {str(one): 10 for one in range(_CARDS)}}
        self.server = MemberServer(dict.fromkeys(NODES, capacity), numbers=self.draw(6) > 0)
        self.hops: list[Hop] = []
        self.calls: list[SchedulersCall] = []
        self.patches: list[tuple[SchedulersCall, str]] = []
        self.posted: list[tuple[Mapping[str, Any], ServedCall]] = []
        self.broken: PromiseBrokenError | None = None
        self._numbers = count()
        self.ends_in_peace = self.draw(_IN_PEACE) == 0
        size, with_devices = 2 + self.draw(2), self.draw(3) == 0
        self.members = {f"ns/a{one}": self.member("a", size, with_devices) for one in range(size + self.draw(2))}
        self.members |= {f"ns/b{one}": self.member("b", 2, with_devices=False) for one in range(2)}
        self.members["ns/c0"] = self.member("", 1, with_devices)
        self.server.on_landed, self.server.on_ledger = self.check_landed, self.note_ledger
        # Sometimes a group has started, or the pods of the last Job of its name are being deleted.
        placed = NODES[0] if not with_devices and self.draw(3) == 0 else ""
        deleting = bool(placed) and self.draw(2) == 0
        for pod in self.members:
            if pod != "ns/a0" or self.draw(4):
                self.create(pod)
            if placed and pod == "ns/a1":
                self.server.change_pod(pod, node=placed)
            if deleting and pod == "ns/a1":
                self.server.change_pod(pod, deleting=True)
        self.replicas = [self.start(name) for name in REPLICAS]
        for one in self.replicas:
            one.see(len(self.server.pod_history) - self.draw(3))
        self.lead(self.replicas[0])

    def member(self, group: str, size: int, with_devices: bool) -> dict[str, Any]:
        request = {RESOURCE: (5, 6, 10)[self.draw(3)]} if with_devices else {}
        return {"group": group, "size": size, "request": request}

    def create(self, pod: str, *, gated: bool = False) -> None:
        self.server.create_member(pod, **self.members[pod], gated=gated)

    def start(self, name: str) -> HoldingReplica:
        made = HoldingReplica(name, self.server, self.sent, self.hops, self.note_post)
        made.holder = REPLICAS[0]
        return made

    def lead(self, replica: HoldingReplica) -> None:
        """Let a replica believe that it leads; it holds when it looks next."""
        replica.leads = True
        for timer in [*replica.loop.timers]:
            if timer in replica.loop.timers:
                replica.loop.fire(timer)
        replica.loop.run_ready()

    def step(self, number: int) -> None:
        self.number = number
        for one in self.replicas:
            one.now += 1000
        _STEPS[self.draw(len(_STEPS))](self)
        self.answer_schedulers()
        if self.broken is not None:
            raise self.broken

    # the promise

    def check_replicas(self) -> None:
        if self.broken is not None:
            raise self.broken
        super().check_replicas()

    def counted(self, by: HoldingReplica, group: str, address: str) -> list[ServedCall]:
        """Return the calls that a replica may count: a node is kept for each, as far as it can know."""
        found: dict[str, ServedCall] = {}
        for one in by.served:
            pod = one.call.pod
            seen = by.views.seen(pod.uid, pod.pod)
            is_gone = isinstance(seen, Gone) or (
                isinstance(seen, MemberState) and seen.uid == pod.uid and seen.deleting
            )
            is_same = (pod.group, one.call.address) == (group, address)
            if is_same and one.is_open and not one.is_abandoned() and one.found_room and not is_gone:
                found[pod.uid] = one
        return [*found.values()]

    def note_post(self, served: ServedCall, binding: Mapping[str, Any]) -> None:
        """Check that a Binding may be posted."""
        self.posted.append((binding, served))
        pod, by = served.call.pod, served.replica
        if not pod.group or served.may_start:
            return
        if self.server.lived_since(pod.group, served.since):
            served.may_start = True
            return
        counted = self.counted(by, pod.group, served.call.address)
        shown = self.server.pod_history[by.views.pods_at].values()
        said = [one.size for one in shown if isinstance(one, MemberState) and one.group == pod.group and one.is_known]
        size = max([pod.size, *said, *(one.call.pod.size for one in counted)])
        if len(counted) < size:
            # Kept here, because the task in which it is raised may be ended before it is looked at.
            self.broken = self.broken or PromiseBrokenError(
                f"{by.name} posts a Binding for {pod.uid}, as {len(counted)} of {size} members have found room: "
                f"{[one.call.pod.uid for one in counted]}"
            )
            return
        self.seen["complete"] += 1
        for one in counted:
            one.may_start = True

    def note_ledger(self, ledger: Any) -> None:
        for replica in self.replicas:
            for one in replica.served:
                if one.call.node == ledger.subject and one.call.pod.uid in ledger.entries:
                    one.found_room = True

    def check_landed(self, binding: Mapping[str, Any]) -> None:
        """Check that a Binding has not landed on room that was given away."""
        served = next(one for made, one in self.posted if made is binding)
        if served.call.pod.group and not served.is_single and served.call.was_patched:
            raise PromiseBrokenError(f"the Binding of {served.call.pod.uid} lands after its scheduler has given up")

    # what schedulers do

    def bind(self) -> None:
        waiting = [one for one in self.server.pods.values() if not one.node and not one.gated]
        open_calls = [one for one in self.calls if not one.is_over]
        if not waiting or len(open_calls) >= _CALLS_MAX:
            return
        pod = waiting[self.draw(len(waiting))]
        if any(one.pod.uid == pod.uid for one in open_calls) and self.draw(3):
            return
        replica = self.one_of(self.replicas)
        # Mostly one process of the scheduler, which places a pod where there is room.
        call = SchedulersCall(next(self._numbers), pod, NODES[self.draw(2)], ADDRESSES[max(0, self.draw(6) - 4)])
        self.calls.append(call)
        self.tell(lambda: f"{call.address} calls {replica.name} to bind {pod.uid} to {call.node}")
        replica.serve(call)

    def hang_up(self) -> None:
        open_calls = [one for one in self.calls if not one.is_over]
        if open_calls:
            call = self.one_of(open_calls)
            self.tell(lambda: f"{call.address} hangs up for {call.pod.uid}")
            self.give_up(call)

    def give_up(self, call: SchedulersCall) -> None:
        call.has_hung_up = True
        self.end(call, f"context deadline exceeded ({call.number})")

    def end(self, call: SchedulersCall, why: str | None) -> None:
        """Let a call be over for its scheduler; the pod gets a condition later."""
        call.is_over = True
        self.calls.remove(call)
        if why is not None:
            self.patches.append((call, why))

    def patch(self) -> None:
        """Let a scheduler write down why it could not bind a pod, if that is another text."""
        if not self.patches:
            return
        call, why = self.patches.pop(self.draw(len(self.patches)))
        for hop in self.hops:
            hop.has_hung_up |= hop.call is call
        call.was_patched = True
        found = self.server.by_uid(call.pod.uid)
        if found is None or found.node or found.message == why:
            self.seen["same text"] += found is not None and found.message == why
            return
        self.server.change_pod(found.pod, message=why, unschedulable=False)
        self.tell(lambda: f"{call.address} writes for {call.pod.uid}: {why}")

    def find_no_node(self) -> None:
        waiting = [one for one in self.server.pods.values() if one.is_known]
        if waiting:
            pod, text = self.one_of(waiting), f"{self.draw(3)} Insufficient cpu"
            if pod.message != text:
                self.server.change_pod(pod.pod, message=text, unschedulable=True)
                self.tell(lambda: f"{pod.uid} finds no node")

    def edit(self) -> None:
        waiting = [one for one in self.server.pods.values() if not one.node]
        if waiting:
            pod = self.one_of(waiting)
            gated = pod.gated and self.draw(2) == 0
            self.server.change_pod(pod.pod, gated=gated)
            self.tell(lambda: f"{pod.uid} is changed: {self.server.pods[pod.pod].rv}, gated: {gated}")

    def answer_schedulers(self) -> None:
        """Let answers of replicas reach those who wait for them."""
        for replica in self.replicas:
            for served in [one for one in replica.served if one.task.done()]:
                if served.task.cancelled() or served.task.exception() is not None:
                    continue
                if served.hop is not None:
                    if not served.hop.is_left:
                        served.hop.future.set_result((200, bytes(served.task.result().body)))
                        served.hop.origin.loop.run_ready()
                elif not served.call.is_over:
                    error = replies.binding_error(bytes(served.task.result().body))
                    self.tell(lambda served=served, error=error: f"{served.call.pod.uid}: {error or 'bound'}")  # type: ignore[misc]
                    self.end(served.call, error or None)
                replica.served = [one for one in replica.served if one is not served]
        self.hops[:] = [one for one in self.hops if not one.is_left or (one.served and one.served.is_open)]

    # what happens to pods

    def delete(self) -> None:
        if self.server.pods:
            pod = self.one_of([*self.server.pods.values()])
            if pod.deleting or not pod.node:
                self.server.delete_pod(pod.pod)
            else:
                self.server.change_pod(pod.pod, deleting=True)
            self.tell(lambda: f"{pod.uid} is {'gone' if pod.deleting or not pod.node else 'being deleted'}")

    def end_or_delete_all(self) -> None:
        """Let a whole group end, as a Job that is deleted and made again under its name."""
        placed = [one for one in self.server.pods.values() if one.node and one.group]
        for pod in placed:
            self.server.change_pod(pod.pod, deleting=True)
        if placed:
            self.tell(lambda: f"{[one.uid for one in placed]} are being deleted")

    def come(self) -> None:
        gone = [name for name, one in self.members.items() if name not in self.server.pods]
        going = [one.pod for one in self.server.pods.values() if one.deleting]
        if gone or going:
            pod = self.one_of(gone or going)
            if pod in going:
                self.server.delete_pod(pod)
            self.create(pod, gated=self.draw(4) == 0)
            self.tell(lambda: f"{self.server.pods[pod].uid} is created")

    def kubelet(self) -> None:
        placed = [one for one in self.server.pods.values() if one.node and not one.ended]
        if placed:
            pod = self.one_of(placed)
            self.server.change_pod(pod.pod, ended=self.draw(2) == 0)
            self.tell(lambda: f"kubelet reports {pod.uid}, ended: {self.server.pods[pod.pod].ended}")

    # what replicas are like

    def see_pods(self) -> None:
        replica = self.one_of(self.replicas)
        replica.see(1 + self.draw(8))
        self.tell(lambda: f"{replica.name} sees pods at {replica.views.pods_at} of {len(self.server.pod_history) - 1}")

    def see_ledgers(self) -> None:
        self.one_of(self.replicas).advance_ledgers(1 + self.draw(4))

    def pass_on(self) -> None:
        """Let a call that is passed on arrive, or its end."""
        flying = [one for one in self.hops if one.served is None]
        if not flying:
            return
        hop = self.one_of(flying)
        target = next(one for one in self.replicas if one.name == hop.where)
        hop.has_hung_up = hop.is_left or hop.call.has_hung_up
        self.tell(lambda: f"{target.name} is passed the call for {hop.call.pod.uid}")
        target.serve(hop.call, hop)

    def hear_hang_up(self) -> None:
        for hop in self.hops:
            hop.has_hung_up |= hop.is_left or hop.call.has_hung_up

    def timer(self) -> None:
        replica = self.one_of(self.replicas)
        if replica.loop.timers and not replica.loop.paused:
            replica.loop.fire(self.one_of(replica.loop.timers))
            replica.loop.run_ready()

    def wait(self) -> None:
        seconds = _WAITS_S[self.draw(len(_WAITS_S))]
        for one in self.replicas:
            one.now += round(seconds * _SECOND)
            for timer in [*one.loop.timers]:
                if not one.loop.paused and timer in one.loop.timers:
                    one.loop.fire(timer)
                    one.loop.run_ready()
        self.tell(lambda: f"{seconds} s pass")

    def pause(self) -> None:
        replica = self.one_of(self.replicas)
        replica.loop.paused = not replica.loop.paused
        self.tell(lambda: f"{replica.name} {'is stopped' if replica.loop.paused else 'goes on'}")
        replica.loop.run_ready()

    def take_lead(self) -> None:
        """Let another replica lead; the one before may believe that it does for a while."""
        replica = self.one_of(self.replicas)
        replica.leads = not replica.leads
        for one in self.replicas:
            one.holder = replica.name if self.draw(3) else one.holder
        self.tell(lambda: f"{replica.name} {'leads' if replica.leads else 'leads no more'}")
        if replica.leads and self.draw(2):
            self.lead(replica)

    def crash(self) -> None:
        at = self.draw(len(self.replicas))
        killed = self.replicas[at]
        killed.loop.end()
        self.sent[:] = [one for one in self.sent if not (one.owner is killed and one.carried_out)]
        self.tell(lambda: f"{killed.name} is killed")
        for hop in [one for one in self.hops if one.where == killed.name and not one.is_left]:
            hop.future.set_exception(OSError("the connection is gone"))
            hop.origin.loop.run_ready()
        for one in killed.served:
            if one.hop is None and not one.call.is_over:
                self.end(one.call, f"EOF ({one.call.number})")
        self.replicas[at] = self.start(killed.name)
        self.replicas[at].now = killed.now
        self.replicas[at].see(self.draw(len(self.server.pod_history)))


_WEIGHTS: Final[dict[Step, int]] = {
    GroupsCase.bind: 16,
    GroupsCase.hang_up: 2,
    GroupsCase.patch: 6,
    GroupsCase.find_no_node: 1,
    GroupsCase.edit: 2,
    GroupsCase.delete: 3,
    GroupsCase.end_or_delete_all: 2,
    GroupsCase.come: 5,
    GroupsCase.kubelet: 1,
    GroupsCase.serve: 16,
    GroupsCase.land: 3,
    GroupsCase.time_out: 3,
    GroupsCase.lose: 1,
    GroupsCase.timer: 2,
    GroupsCase.wait: 1,
    GroupsCase.see_pods: 8,
    GroupsCase.see_ledgers: 2,
    GroupsCase.pass_on: 8,
    GroupsCase.hear_hang_up: 1,
    GroupsCase.pause: 2,
    GroupsCase.take_lead: 1,
    GroupsCase.crash: 1,
}
_STEPS: Final[list[Step]] = [step for step, weight in _WEIGHTS.items() for _ in range(weight)]


def run_case(numbers: Sequence[int], seen: Counter[str], trace: list[str] | None = None) -> None:
    """Run a case and then, without faults, see that all groups start and that nothing is held."""
    case = GroupsCase(numbers[0], trace)
    try:
        for number in numbers[1:]:
            case.step(number)
        case.check_replicas()
        if case.ends_in_peace:
            try:
                quieten(case)
            finally:
                case.check_replicas()
    finally:
        for one in case.replicas:
            one.loop.end()
    seen.update(case.seen)
    seen["bindings"] += case.server.bindings


def quieten(case: GroupsCase) -> None:
    """Let everything arrive, and call for each pod that is left: each group starts that finds room."""
    server = case.server
    case.number = 0
    case.tell(lambda: "from here on nothing goes wrong")
    for one in case.replicas:
        one.loop.paused = False
        one.leads = one is case.replicas[0]
        one.holder = case.replicas[0].name
        one.loop.run_ready()
    case.lead(case.replicas[0])
    for call in [*case.calls]:
        case.give_up(call)
    settle(case)
    if "ns/c0" in server.pods:
        server.delete_pod("ns/c0")
    for pod in [*server.pods.values()]:
        if pod.deleting or pod.ended:
            server.delete_pod(pod.pod)
        elif pod.gated:
            server.change_pod(pod.pod, gated=False)
    for name in case.members:
        if name != "ns/c0" and name not in server.pods:
            case.create(name)
    for _ in range(8):
        if all(one.node for one in server.pods.values()):
            break
        place_all(case)
    case.seen["all started"] += all(one.node for one in server.pods.values())
    for group in ("a", "b"):
        left = [one for one in server.pods.values() if one.group == group and not one.node]
        if left and has_room(case, left):
            raise StuckError(f"{[one.uid for one in left]} are not placed: {[one.message for one in left]}")
    for one in case.replicas:
        if held := [call for call in one.served if call.is_open]:
            raise StuckError(f"{one.name} still has calls of {[call.call.pod.uid for call in held]}")


def has_room(case: GroupsCase, left: Sequence[MemberState]) -> bool:
    """Return whether each of these, which ask for the same, has a card."""
    if not left[0].request:
        return True
    amount = left[0].request[RESOURCE]
    places = sum(case.server.room(node).free(RESOURCE, str(card)) // amount for node in NODES for card in range(_CARDS))
    return places >= len(left)


def settle(case: GroupsCase) -> None:
    """Let all requests, calls and patches arrive, and everything be seen."""
    for _ in range(400):
        for one in case.replicas:
            one.see(1000)
        case.answer_schedulers()
        if case.sent:
            case.serve()
        elif any(hop.served is None for hop in case.hops):
            case.pass_on()
        elif case.patches:
            case.patch()
        else:
            break
    else:
        raise StuckError("requests follow each other without end")
    case.hear_hang_up()


def let_pass(case: GroupsCase, seconds: float) -> None:
    """Let time pass, and do what is due."""
    for one in case.replicas:
        one.now += round(seconds * _SECOND)
        for timer in [*one.loop.timers]:
            if timer in one.loop.timers:
                one.loop.fire(timer)
                one.loop.run_ready()
    settle(case)


def place_all(case: GroupsCase) -> None:
    """Let one process of a scheduler call for the members of each group, once its rest is over."""
    server = case.server
    for _ in range(3):
        let_pass(case, 31)
    for group in ("a", "b"):
        taken: Counter[str] = Counter()
        for pod in [one for one in server.pods.values() if one.group == group and not one.node]:
            node = NODES[0]
            if pod.request:
                amount = pod.request[RESOURCE]
                places = {
                    name: sum(server.room(name).free(RESOURCE, str(card)) // amount for card in range(_CARDS))
                    for name in NODES
                }
                node = max(NODES, key=lambda name: places[name] - taken[name])
                taken[node] += 1
            call = SchedulersCall(next(case._numbers), pod, node, ADDRESSES[0])
            case.calls.append(call)
            case.tell(lambda call=call: f"{call.address} calls A to bind {call.pod.uid} to {call.node}")  # type: ignore[misc]
            case.replicas[len(case.calls) % 2].serve(call)
            settle(case)
        let_pass(case, 1)
        let_pass(case, 31)


EXPLORER: Final = Explorer(run_case, STEPS, _BITS)

"""Outcomes that one state of a pod tells, so that each leader that sees that state learns the same.

What is not the node's fault tells nothing: preemption, evictions through the API, deletions, node shutdown, and what
the races of two schedulers cause. A pod that is ended so is killed, so its containers' exits tell nothing, either.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field

from fairlead.learned.pair import key_of

SUCCESS: Final = 1.0
LATE_FAILURE: Final = 0.5
FAILURE: Final = 0.0
_TRUE: Final = "True"
_EVICTED: Final = "Evicted"
_GONE: Final = ("DeletionByPodGC",)
_TAINTED: Final = "DeletionByTaintManager"


class _Metadata(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815  as of the API
    deletionTimestamp: str | None = None  # noqa: N815


class _Spec(Struct, frozen=True):
    nodeName: str = ""  # noqa: N815


class _Condition(Struct, frozen=True):
    type: str
    status: str
    reason: str = ""
    lastTransitionTime: datetime | None = None  # noqa: N815


class _Running(Struct, frozen=True):
    pass


class _Terminated(Struct, frozen=True):
    exitCode: int = 0  # noqa: N815
    startedAt: datetime | None = None  # noqa: N815
    finishedAt: datetime | None = None  # noqa: N815
    containerID: str = ""  # noqa: N815


class _State(Struct, frozen=True):
    running: _Running | None = None
    terminated: _Terminated | None = None


_NO_STATE: Final = _State()


class _Container(Struct, frozen=True):
    name: str
    restartCount: int = 0  # noqa: N815
    state: _State = _NO_STATE
    lastState: _State = _NO_STATE  # noqa: N815

    @property
    def has_started(self) -> bool:
        states = (self.state.running, self.state.terminated, self.lastState.terminated)
        return self.restartCount > 0 or any(one is not None for one in states)


class _Status(Struct, frozen=True):
    phase: str = ""
    reason: str = ""
    startTime: datetime | None = None  # noqa: N815
    conditions: list[_Condition] = field(default_factory=list)
    containerStatuses: list[_Container] = field(default_factory=list)  # noqa: N815
    initContainerStatuses: list[_Container] = field(default_factory=list)  # noqa: N815

    def condition(self, kind: str) -> _Condition | None:
        """Return a condition that is True."""
        return next((one for one in self.conditions if one.type == kind and one.status == _TRUE), None)

    @property
    def containers(self) -> list[_Container]:
        return [*self.initContainerStatuses, *self.containerStatuses]


_NO_STATUS: Final = _Status()


class ObservedPod(Struct, frozen=True):
    """The part of a pod that tells outcomes: little, because it is decoded at each event."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _NO_STATUS


decode_pod: Final = msgspec.json.Decoder(ObservedPod).decode


class PodOutcome(NamedTuple):
    """Outcome of a pod or of one of its containers."""

    reward: float
    at: int
    """Time in seconds since 1970."""
    id: str


class Told(NamedTuple):
    """Outcomes that a state of a pod tells."""

    outcomes: list[PodOutcome]
    later: list[PodOutcome]
    """Outcomes that the same state tells once their time has come."""


def outcomes_of(pod: ObservedPod, settle_s: int, now: int, *, node_is_ready: bool = True) -> Told:
    """Return the outcomes that a state of a placed pod tells at a moment.

    Each has one time and one id in all states that tell it, and no pod tells two ends.
    """
    later: list[PodOutcome] = []
    found = [*_of_exits(pod, settle_s)]
    if (end := _end(pod, node_is_ready=node_is_ready)) is not None and end[1] is not None:
        found.insert(0, PodOutcome(end[0], end[1], key_of(pod.metadata.uid, "end")))
    for reward, at, name in _of_time(pod, settle_s):
        (found if at <= now else later).append(PodOutcome(reward, at, key_of(pod.metadata.uid, name)))
    return Told(found, later)


def _end(pod: ObservedPod, *, node_is_ready: bool) -> tuple[float, int | None] | None:
    """Return reward and time of how a pod ended; None if that tells nothing."""
    status = pod.status
    disruption = status.condition("DisruptionTarget")
    if disruption is not None:  # whatever its phase: a pod that is evicted may well succeed
        told = _GONE if node_is_ready else (*_GONE, _TAINTED)
        is_told = disruption.reason in told or (status.phase == "Failed" and status.reason == _EVICTED)
        return (FAILURE, _seconds(disruption.lastTransitionTime)) if is_told else None
    if status.phase == "Succeeded":
        ends = [_seconds(one.state.terminated.finishedAt) for one in status.containers if one.state.terminated]
        return SUCCESS, max((at for at in ends if at is not None), default=None)
    if status.phase == "Failed" and status.reason in (_EVICTED, "UnexpectedAdmissionError"):
        return FAILURE, _seconds(status.startTime)  # set by the kubelet, also of a pod that it does not admit
    return None


def _of_exits(pod: ObservedPod, settle_s: int) -> Iterator[PodOutcome]:
    status = pod.status
    if pod.metadata.deletionTimestamp is not None or status.condition("DisruptionTarget") is not None:
        return
    if status.phase == "Failed" and status.reason:  # the kubelet ended the pod, and so its containers
        return
    for container in status.containers:
        ends = [container.lastState.terminated]
        # Of a pod that succeeded only its sidecars end with another code, because the kubelet ends them.
        if status.phase != "Succeeded":
            ends.append(container.state.terminated)
        for end in ends:
            if end is None or end.exitCode == 0 or (at := _seconds(end.finishedAt)) is None:
                continue
            ran = at - (_seconds(end.startedAt) or at)
            reward = LATE_FAILURE if ran >= settle_s else FAILURE
            # Not the number of restarts: a container that waits after its end has the same one as before it.
            yield PodOutcome(reward, at, key_of(pod.metadata.uid, container.name, end.containerID or at))


def _of_time(pod: ObservedPod, settle_s: int) -> Iterator[tuple[float, int, str]]:
    status = pod.status
    started, scheduled = _seconds(status.startTime), status.condition("PodScheduled")
    if status.condition("Ready") is not None and started is not None and not _restarts(status.containers):
        yield SUCCESS, started + settle_s, "settled"
    at = None if scheduled is None else _seconds(scheduled.lastTransitionTime)
    is_waiting = status.phase == "Pending" and pod.metadata.deletionTimestamp is None
    if is_waiting and at is not None and not any(one.has_started for one in status.containers):
        yield FAILURE, at + settle_s, "never"


def _restarts(containers: Iterable[_Container]) -> int:
    return sum(one.restartCount for one in containers)


def _seconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp())

"""bind, to its end: what the API server says, and what the scheduler is told of it."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.kube.errors import AccessError, ClusterError, ConflictError, NotFoundError, RequestError, UnreachableError
from fairlead.kube.resources import PODS
from fairlead.webhook.binding.api_calls import Failed, Missing, Posted, WriteFailure
from fairlead.webhook.binding.binder import NO_MEMBER, Binder
from fairlead.webhook.binding.binding_client import read, write
from fairlead.webhook.extender.call import CallClock, IncomingCall, VerbReply
from support.policy import NOW, SECOND, node, policy
from support.webhook import Asking, go

ASKED = {"PodName": "x", "PodNamespace": "ml", "PodUID": "u-x", "Node": "n"}
WHERE = PODS.named("ml", "x", "binding")
CONFLICT = ConflictError("create", WHERE, "pod x is already assigned to a node", status=409)
SILENCE = UnreachableError("create", WHERE, "it does not answer")
NOT_SENT = UnreachableError("create", WHERE, "it cannot be reached", not_sent=True)
NO_RIGHTS = RequestError("create", WHERE, "forbidden", status=403)
BROKEN = RequestError("create", WHERE, "request did not complete", status=504)
NOBODY = AccessError("config", "exec", "the program has failed", "run it by hand")
SPEC = {"schedulerName": "fairlead"}
GONE = NotFoundError("create", WHERE, "no pod", status=404)


def written(uid: str = "u-x", node: str = "", scheduler: str = "fairlead") -> bytes:
    metadata = {"name": "x", "namespace": "ml", "uid": uid}
    return json.dumps({"metadata": metadata, "spec": {"schedulerName": scheduler, "nodeName": node}}).encode()


async def _answered(answer: bytes | ClusterError) -> bytes:
    if isinstance(answer, ClusterError):
        raise answer
    return answer


class Api:
    """Each answer is bytes, an error, or nothing; each takes as long as it may, if it `lasts`."""

    def __init__(self, bound: ClusterError | None, pod: bytes | ClusterError, *, lasts: bool = False) -> None:
        self.bound, self.found, self.lasts = bound, pod, lasts
        self.time = 0
        self.asked: list[str] = []
        self.posted: list[Any] = []
        self.within: list[float] = []

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted | WriteFailure:
        self._pass("bind", timeout_s)
        self.posted.append(binding)
        return await write(_answered(self.bound or b""), lambda _: Posted())

    async def read_body(self, namespace: str, name: str, timeout_s: float) -> bytes | Missing | Failed:
        self._pass("get", timeout_s)
        return await read(_answered(self.found))

    def _pass(self, what: str, within_s: float) -> None:
        self.asked.append(what)
        self.within.append(within_s)
        if self.lasts:
            self.time += int(within_s * SECOND)

    def clock(self) -> int:
        return self.time


def bind(api: Api, *, known: bool = True, deadline_ns: float = 0.8, scheduler: str = "fairlead") -> VerbReply:
    spec = {"schedulerName": scheduler}
    held = from_json("Pod", {"metadata": {"name": "x", "namespace": "ml", "uid": "u-x"}, "spec": spec})
    asking = Asking([], [node("n")], unplaced=[held] if known else [])
    when = CallClock(NOW, api.clock, int(deadline_ns * SECOND))
    return asyncio.run(Binder(api).bind(incoming(asking), asking.serving, when))


def incoming(asking: Asking, is_abandoned: Callable[[], bool] = lambda: False) -> IncomingCall:
    return IncomingCall("fairlead", asking.caller, json.dumps(ASKED).encode(), 0, is_abandoned)


def error(answer: VerbReply) -> str:
    assert answer.status == 200
    assert answer.outcome.verb == "bind"
    said: str = go.decode("bind", answer.body)["Error"]
    assert (answer.outcome.result == "error") is bool(said)
    return said


# what the API server makes of the Binding, what it says of the pod then; what is asked, and what the scheduler reads
KNOWN: dict[str, tuple[ClusterError | None, bytes | ClusterError, list[str], str]] = {
    "it is bound": (None, b"", ["bind"], ""),
    "an earlier call has bound it there": (CONFLICT, written(node="n"), ["bind", "get"], ""),
    "it is bound elsewhere": (CONFLICT, written(node="m"), ["bind", "get"], "the pod is already bound to node m"),
    "another conflict": (CONFLICT, written(), ["bind", "get"], "already assigned"),
    "another pod has its name": (CONFLICT, written("u-2"), ["bind", "get"], "another pod has that name now"),
    "silence, and it is bound": (SILENCE, written(node="n"), ["bind", "get"], ""),
    "silence, and it is not bound": (SILENCE, written(), ["bind", "get"], "does not answer"),
    "silence, and silence": (SILENCE, SILENCE, ["bind", "get"], "it is unknown whether the pod is bound"),
    "half an answer of the API server, and it is bound": (BROKEN, written(node="n"), ["bind", "get"], ""),
    "never sent": (NOT_SENT, b"", ["bind"], "cannot be reached"),
    "not allowed": (NO_RIGHTS, b"", ["bind"], "forbidden"),
    "nobody knows who asks": (NOBODY, b"", ["bind"], "the program has failed"),
    "it has gone": (GONE, b"", ["bind"], "the pod no longer exists"),
}


@pytest.mark.parametrize("case", KNOWN)
def test_a_pod_that_the_mirror_knows(case: str) -> None:
    bound, pod, asked, want = KNOWN[case]
    api = Api(bound, pod)
    said = error(bind(api))
    assert (api.asked, want in said, bool(said)) == (asked, True, bool(want)), said
    assert api.posted[0]["metadata"]["uid"] == "u-x"


@pytest.mark.parametrize(
    ("fields", "want"),
    [({"is_abandoned": lambda: True}, "the caller has hung up"), ({"is_passed_on": True}, NO_MEMBER)],
    ids=["hung up", "passed on by a replica to whose policies it is a member"],
)
def test_nothing_is_posted_for_a_call_that(fields: dict[str, Any], want: str) -> None:
    api = Api(None, b"")
    pod_ = from_json("Pod", {"metadata": {"name": "x", "namespace": "ml", "uid": "u-x"}, "spec": SPEC})
    asking = Asking([], [node("n")], unplaced=[pod_])
    call, when = replace(incoming(asking), **fields), CallClock(NOW, api.clock, SECOND)
    answer = asyncio.run(Binder(api).bind(call, asking.serving, when))
    assert (error(answer), api.asked) == (want, [])


UNKNOWN: dict[str, tuple[bytes | ClusterError, list[str], str]] = {
    "it waits": (written(), ["get", "bind"], ""),
    "it is bound there already": (written(node="n"), ["get"], ""),
    "it is bound elsewhere": (written(node="m"), ["get"], "the pod is already bound to node m"),
    "another one": (written("u-2"), ["get"], "another pod has that name now"),
    "another scheduler's": (written(scheduler="other"), ["get"], "whose pods the caller may not place"),
    "another scheduler's, bound there": (written(scheduler="other", node="n"), ["get"], "the caller may not place"),
    "it has gone": (GONE, ["get"], "the pod no longer exists"),
    "silence": (SILENCE, ["get"], "does not answer"),
    "nobody knows who asks": (NOBODY, ["get"], "the program has failed"),
    "no pod": (b"[]", ["get"], "cannot be read"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_a_pod_that_the_mirror_does_not_know_is_asked_for(case: str) -> None:
    pod, asked, want = UNKNOWN[case]
    api = Api(None, pod)
    said = error(bind(api, known=False))
    assert (api.asked, want in said or case == "no pod", bool(said)) == (asked, True, bool(want)), said


def test_another_schedulers_pod_is_refused_without_asking() -> None:
    api = Api(None, b"")
    assert "whose pods the caller may not place" in error(bind(api, scheduler="other"))
    assert api.asked == []


LATE: dict[str, tuple[Callable[[], Api], bool, float, list[str]]] = {
    "the Binding takes all its time": (lambda: Api(SILENCE, SILENCE, lasts=True), True, 0.8, ["bind", "get"]),
    "looking at the pod does": (lambda: Api(None, written(), lasts=True), False, 0.8, ["get"]),
    "nothing is left at the start": (lambda: Api(None, b""), True, 0.01, []),
    "nor to look at the pod": (lambda: Api(None, b""), False, 0.01, []),
}


@pytest.mark.parametrize("case", LATE)
def test_it_ends_before_the_scheduler_gives_up(case: str) -> None:
    make, known, deadline_ns, asked = LATE[case]
    api = make()
    assert error(bind(api, known=known, deadline_ns=deadline_ns))
    assert api.asked == asked
    assert api.time <= deadline_ns * SECOND


@pytest.mark.parametrize(("lasts", "switched"), [(False, [None, "class"]), (True, [None, None])])
def test_what_the_api_server_took_is_no_policys_fault(lasts: bool, switched: list[str | None]) -> None:
    api = Api(None, written(), lasts=lasts)
    asking = Asking([policy(annotations={"fairlead.dev/x": "'x'"})], [node("n")])
    before, found = api.clock, []

    def clock() -> int:
        api.time += SECOND // 1000
        return before()

    for _ in switched:
        when = CallClock(NOW, clock, api.time + (SECOND if lasts else SECOND // 200))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fairlead.webhook.binding.binder.LEAST_S", 0.0)
            patch.setattr("fairlead.webhook.binding.poster.LEAST_S", 0.0)
            found.append(asyncio.run(Binder(api).bind(incoming(asking), asking.serving, when)).outcome)
    assert [(one.too_slow, one.switched) for one in found] == [("p", one) for one in switched]

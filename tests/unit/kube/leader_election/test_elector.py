"""The Lease in its thread, against an API server that keeps one: had, held, lost, released."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from fairlead.kube.access.login import Login
from fairlead.kube.errors import AccessError
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.kube.leader_election.elector import ADDRESS, LEASES, Elector, identity, record_of
from scripted.loop import in_loop
from scripted.server import Server, Step
from scripted.steps import answer, refuse

HERE = LEASES.named("fairlead-system", "fairlead-operator")
PATH = "/apis/coordination.k8s.io/v1/namespaces/fairlead-system/leases"
QUICK = LeaseTimings(lease_s=5, act_s=4, retry_s=0.05)
ME = identity("fairlead-0", "u-1")


@dataclass
class Leases:
    """Keeps one, as the API server would. `trouble` answers in its place."""

    lease: dict[str, Any] | None = None
    trouble: Step | None = None
    version: int = 0
    renewals: int = 0

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.trouble is not None:
            return await self.trouble(request)
        if request.method == "GET":
            return await (answer(self.lease) if self.lease else refuse(404, "NotFound"))(request)
        sent = json.loads(await request.read())
        if request.method == "POST":
            assert request.path == PATH
            if self.lease:
                return await refuse(409, "AlreadyExists")(request)
            return await answer(self.put(sent["spec"], sent["metadata"].get("annotations")), 201)(request)
        assert (request.method, request.path) == ("PATCH", f"{PATH}/{HERE.name}")
        if not self.lease:
            return await refuse(404, "NotFound")(request)
        if sent["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return await refuse(409, "Conflict")(request)
        self.renewals += 1
        annotations = self.annotations | sent["metadata"].get("annotations", {})
        return await answer(self.put(self.lease["spec"] | sent["spec"], annotations))(request)

    def put(self, spec: dict[str, Any], annotations: dict[str, str] | None = None) -> dict[str, Any]:
        self.version += 1
        metadata = {"name": HERE.name, "resourceVersion": str(self.version), "annotations": annotations or {}}
        self.lease = {"metadata": metadata, "spec": spec}
        return self.lease

    @property
    def annotations(self) -> dict[str, str]:
        return dict(self.lease["metadata"]["annotations"]) if self.lease else {}

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""


@dataclass
class Work:
    """Says when it was begun and ended; goes on after its end until the test lets it."""

    said: list[str] = field(default_factory=list)
    goes_on: bool = False
    lingers: bool = False
    threads: set[str] = field(default_factory=set)

    def start(self) -> None:
        self.said.append("begin")
        self.goes_on = True
        self.threads.add(threading.current_thread().name)

    def stop(self) -> None:
        self.said.append("end")
        if not self.lingers:
            self.goes_on = False

    @property
    def stopped(self) -> bool:
        return not self.goes_on


@dataclass
class Scene:
    server: Server
    leases: Leases
    work: Work
    elector: Elector

    async def until(self, wanted: Callable[[], object]) -> None:
        while not wanted():
            await asyncio.sleep(0.005)

    async def leading(self) -> None:
        await self.until(lambda: self.elector.is_leader and self.work.goes_on)


@asynccontextmanager
async def scene(
    leases: Leases | None = None, access: Callable[[Login], Login] = lambda given: given, address: str = ""
) -> AsyncIterator[Scene]:
    leases, work = leases or Leases(), Work()
    async with Server(leases.serve) as server:
        elector = Elector(lambda: access(server.login()), HERE, ME, work, terms=QUICK, address=address)
        elector.start()
        try:
            yield Scene(server, leases, work, elector)
        finally:
            work.goes_on = work.lingers = False
            await asyncio.to_thread(elector.stop, 20)


@in_loop
async def test_it_is_had_renewed_and_released() -> None:
    async with scene() as one:
        await one.leading()
        assert one.leases.lease is not None
        spec = dict(one.leases.lease["spec"])
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (ME, 5, 0)
        await one.until(lambda: one.leases.renewals > 2)
        renewed = one.leases.lease["spec"]
        # it may have been renewed before it was looked at first
        assert renewed["acquireTime"] == spec["acquireTime"] <= spec["renewTime"] < renewed["renewTime"]
        await asyncio.to_thread(one.elector.stop, 20)
        assert (one.leases.holder, one.elector.is_leader, one.work.said) == ("", False, ["begin", "end"])
        assert one.work.threads == {"lease"}


@in_loop
async def test_it_is_released_only_when_all_has_ended() -> None:
    async with scene() as one:
        await one.leading()
        one.work.lingers = True
        stopping = asyncio.create_task(asyncio.to_thread(one.elector.stop, 20))
        await one.until(lambda: one.work.said == ["begin", "end"])
        before = one.leases.renewals
        await one.until(lambda: one.leases.renewals > before + 3)
        assert one.leases.holder == ME
        one.work.goes_on = False
        one.elector.wake()
        await stopping
        assert one.leases.holder == ""


async def silent(_: web.BaseRequest) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("trouble", [refuse(500), refuse(403, "Forbidden"), silent])
@in_loop
async def test_what_cannot_be_renewed_is_lost_and_had_again(trouble: Step) -> None:
    async with scene() as one:
        await one.leading()
        one.leases.trouble = trouble
        await one.until(lambda: one.work.said == ["begin", "end"])
        assert not one.elector.is_leader
        assert one.elector.fault
        one.leases.trouble = None
        await one.leading()
        assert one.work.said == ["begin", "end", "begin"]
        assert one.elector.fault == ""


@in_loop
async def test_who_sees_another_holder_leads_no_more() -> None:
    async with scene() as one:
        await one.leading()
        assert one.leases.lease is not None
        one.leases.put(one.leases.lease["spec"] | {"holderIdentity": "other", "leaseDurationSeconds": 1})
        await one.until(lambda: one.work.said == ["begin", "end"])
        assert (one.elector.is_leader, one.elector.holder) == (False, "other")
        await one.leading()  # the other one has never renewed it
        assert one.leases.lease["spec"]["leaseTransitions"] == 1


@in_loop
async def test_who_has_not_ended_does_not_begin_again() -> None:
    async with scene() as one:
        await one.leading()
        one.work.lingers = True
        one.leases.trouble = refuse(500)
        await one.until(lambda: one.work.said == ["begin", "end"])
        one.leases.trouble = None
        before = len(one.server.seen)
        await one.until(lambda: len(one.server.seen) > before + 5)
        assert {seen.method for seen in one.server.seen[before + 1 :]} == {"GET"}
        one.work.goes_on = False
        await one.leading()


@in_loop
async def test_a_holder_that_renews_is_left_alone() -> None:
    leases = Leases()
    others = {"holderIdentity": "other", "leaseDurationSeconds": 3, "leaseTransitions": 0}
    leases.put(others)
    async with scene(leases) as one:
        for _ in range(10):
            before = len(one.server.seen)
            await one.until(lambda before=before: len(one.server.seen) >= before + 5)  # type: ignore[misc]
            leases.put(others)
        assert {seen.method for seen in one.server.seen} == {"GET"}
        assert one.work.said == []
        leases.put(others | {"holderIdentity": ""})
        await one.leading()


@in_loop
async def test_a_candidate_that_another_one_forestalls_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    theirs = {"holderIdentity": "another", "leaseDurationSeconds": 5, "leaseTransitions": 0}
    leases = Leases()

    async def create_theirs_first(request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return await refuse(404, "NotFound")(request)
        leases.put(theirs)
        leases.trouble = None
        return await refuse(409, "AlreadyExists")(request)

    leases.trouble = create_theirs_first
    async with scene(leases) as play:
        await play.until(lambda: play.elector.holder == "another")
        assert play.elector.fault == ""
    assert [one.msg for one in caplog.records if one.levelname == "WARNING"] == []


@in_loop
async def test_a_missing_right_is_named() -> None:
    message = (
        'leases.coordination.k8s.io "x" is forbidden: User "u" cannot get resource "leases" in API group '
        '"coordination.k8s.io" in the namespace "fairlead-system"'
    )
    async with scene() as one:
        one.leases.trouble = refuse(403, "Forbidden", message)
        await one.until(lambda: "lacks the rule" in one.elector.fault)
        assert 'apiGroups: ["coordination.k8s.io"], resources: [leases], verbs: [get]' in one.elector.fault


@in_loop
async def test_a_namespace_that_is_not_there_is_asked_for_at_its_pace() -> None:
    leases = Leases(trouble=refuse(404, "NotFound", 'namespaces "fairlead-system" not found'))
    async with scene(leases) as one:
        await one.until(lambda: [seen.method for seen in one.server.seen].count("POST") > 1)
        assert "namespaces" in one.elector.fault
        asked = [seen.method for seen in one.server.seen]
        assert asked[asked.index("POST") :][:3] == ["POST", "GET", "POST"]


@in_loop
async def test_who_cannot_tell_where_the_api_server_is_asks_again() -> None:
    tries: list[Login] = []

    def found(given: Login) -> Login:
        tries.append(given)
        if len(tries) < 3:
            raise AccessError("config", "", "is not there", "write it")
        return given

    async with scene(access=found) as one:
        await one.leading()
        assert len(tries) == 3


@in_loop
async def test_the_address_of_a_holder_is_known_to_the_others_while_it_holds() -> None:
    leases = Leases()
    async with scene(leases, address="[fd00::7]:8443") as one:
        await one.leading()
        assert leases.annotations == {ADDRESS: "[fd00::7]:8443"}
        assert one.elector.other_address == "", "it is not another one"
        await one.until(lambda: leases.renewals > 1)
        assert leases.annotations == {ADDRESS: "[fd00::7]:8443"}
        other = Elector(
            one.server.login, HERE, identity("fairlead-1", "u-2"), Work(), terms=QUICK, address="10.0.0.8:8443"
        )
        other.start()
        try:
            await one.until(lambda: other.other_address == "[fd00::7]:8443")
            await asyncio.to_thread(one.elector.stop, 20)
            await one.until(lambda: other.is_leader)
            assert (leases.annotations, other.other_address) == ({ADDRESS: "10.0.0.8:8443"}, "")
        finally:
            await asyncio.to_thread(other.stop, 20)


@pytest.mark.parametrize(
    ("holder", "annotations", "want"),
    [("other", {ADDRESS: "10.0.0.9:8443"}, "10.0.0.9:8443"), ("", {ADDRESS: "10.0.0.9:8443"}, ""), ("other", None, "")],
)
def test_a_lease_without_a_holder_has_no_address(holder: str, annotations: dict[str, str] | None, want: str) -> None:
    lease = Leases().put({"holderIdentity": holder, "leaseDurationSeconds": 5}, annotations)
    assert record_of(json.dumps(lease).encode()).address == want

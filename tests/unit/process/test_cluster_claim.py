"""Operators of several namespaces, and the one Lease by which one of them manages the policies."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from aiohttp import web

from fairlead.kube.http.client import Clock
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.process.cluster_claim import CLAIM, ClaimLease, ClusterClaim, OtherClaims
from fairlead.process.cluster_claim import TERMS as LONG
from fairlead.render import rbac
from scripted.loop import in_loop
from scripted.server import Server
from scripted.steps import answer, refuse

QUICK = LeaseTimings(lease_s=5, act_s=4, retry_s=0.05, absent_s=0.1)
COLLECTION = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@dataclass
class Kept:
    """The Lease, as the API server would keep it."""

    spec: dict[str, Any] | None = None
    version: int = 0
    deaf: set[str] = field(default_factory=set)
    """Whose writes come to nothing: their namespaces."""

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        sent = json.loads(await request.read() or b"{}")
        if sent.get("spec", {}).get("holderIdentity") in self.deaf:
            return await refuse(503, "ServiceUnavailable")(request)
        if request.method == "POST":
            assert request.path == COLLECTION
            if self.spec is not None:
                return await refuse(409, "AlreadyExists")(request)
            return await answer(self.put(sent["spec"]), 201)(request)
        assert request.path == f"{COLLECTION}/schedulerextenderpolicies.fairlead.dev"
        if self.spec is None:
            return await refuse(404, "NotFound")(request)
        if request.method == "PATCH":
            if sent["metadata"]["resourceVersion"] != str(self.version):
                return await refuse(409, "Conflict")(request)
            self.put(self.spec | sent["spec"])
        return await answer(self.body)(request)

    def put(self, spec: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.spec = spec
        return self.body

    @property
    def body(self) -> dict[str, Any]:
        assert self.spec is not None
        return {"metadata": {"name": CLAIM.name, "resourceVersion": str(self.version)}, "spec": self.spec}


@dataclass
class Work:
    """A duty that ends when it is told to."""

    goes_on: bool = False
    begun: int = 0

    def start(self) -> None:
        self.goes_on = True
        self.begun += 1

    def stop(self) -> None:
        self.goes_on = False

    @property
    def stopped(self) -> bool:
        return not self.goes_on


@dataclass
class Scene:
    kept: Kept
    server: Server
    claims: dict[str, ClusterClaim] = field(default_factory=dict)
    works: dict[str, Work] = field(default_factory=dict)
    overs: list[str] = field(default_factory=list)

    def begin(self, replica: str) -> ClusterClaim:
        """A replica `namespace/name` has the Lease of its namespace."""
        namespace = replica.partition("/")[0]
        work = self.works[replica] = Work()
        over = lambda: self.overs.append(replica)  # noqa: E731
        made = self.claims[replica] = ClusterClaim(self.server.login, namespace, work, over, terms=QUICK)
        made.start()
        return made

    async def until(self, wanted: Callable[[], object]) -> None:
        while not wanted():
            await asyncio.sleep(0.005)

    async def manages(self, replica: str) -> None:
        await self.until(lambda: self.works[replica].goes_on and self.claims[replica].left_s > 0)
        at_work = [name for name, one in self.claims.items() if one.left_s > 0]
        assert at_work == [replica]

    async def end(self, replica: str) -> None:
        claim = self.claims[replica]
        claim.stop()
        assert not self.works[replica].goes_on
        await self.until(lambda: claim.stopped)
        assert claim.left_s == 0


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    kept = Kept()
    async with Server(kept.serve) as server:
        made = Scene(kept, server)
        try:
            yield made
        finally:
            for replica in made.claims:
                await made.end(replica)


def test_it_is_the_lease_that_the_roles_name() -> None:
    assert (CLAIM.namespace, CLAIM.name) == ("kube-system", rbac.CLAIM)


def test_another_replica_of_the_namespace_leads_before_another_namespace_does() -> None:
    assert LONG.lease_s > LONG.act_s > LONG.retry_s
    assert LONG.act_s > 2 * LeaseTimings().lease_s
    assert LONG.absent_s is not None
    assert LONG.lease_s > LONG.absent_s > LONG.retry_s


@in_loop
async def test_a_second_operator_does_not_lead_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    async with scene() as one:
        one.begin("first/a")
        await one.manages("first/a")
        second = one.begin("second/a")
        await one.until(lambda: second.other)
        assert (second.other, second.left_s, one.works["second/a"].begun) == ("first", 0.0, 0)
        assert "the operator in the namespace first manages the policies" in second.fault
        assert "uninstall one of them" in second.fault
        assert (one.claims["first/a"].other, one.claims["first/a"].fault) == ("", "")
        before = one.kept.version
        await one.until(lambda: one.kept.version > before + 5)
    said = [vars(record) for record in caplog.records if record.getMessage() == "leader.other_operator"]
    assert [(record["namespace"], record["levelname"]) for record in said] == [("first", "WARNING")], "once"


@in_loop
async def test_two_that_begin_at_once_are_one() -> None:
    async with scene() as one:
        names = [f"n{number}/a" for number in range(4)]
        for name in names:
            one.begin(name)
        await one.until(lambda: sum(bool(claim.other) for claim in one.claims.values()) == len(names) - 1)
        assert sum(work.begun for work in one.works.values()) == 1


@in_loop
async def test_a_replica_that_leaves_does_not_give_it_to_another_namespace() -> None:
    async with scene() as one:
        one.begin("first/a")
        await one.manages("first/a")
        second = one.begin("second/a")
        await one.until(lambda: second.other)
        await one.end("first/a")
        assert one.overs == ["first/a"]
        assert one.kept.body["spec"]["holderIdentity"] == "first"
        one.begin("first/b")  # at once, though it was renewed a moment ago
        await one.manages("first/b")
        assert one.works["second/a"].begun == 0


@in_loop
async def test_the_second_leads_when_the_first_has_gone_without_a_word() -> None:
    async with scene() as one:
        one.begin("first/a")
        await one.manages("first/a")
        one.begin("second/a")
        await one.until(lambda: one.claims["second/a"].other)
        one.kept.deaf.add("first")
        await one.manages("second/a")
        assert not one.works["first/a"].goes_on
        assert one.kept.body["spec"]["holderIdentity"] == "second"
        one.kept.deaf.clear()  # it comes back: now it is the second
        await one.until(lambda: one.claims["first/a"].other == "second")


@in_loop
async def test_the_second_leads_at_once_when_the_first_was_uninstalled() -> None:
    async with scene() as one:
        one.begin("first/a")
        await one.manages("first/a")
        one.begin("second/a")
        await one.until(lambda: one.claims["second/a"].other)
        await one.end("first/a")
        one.kept.put(one.kept.body["spec"] | {"holderIdentity": ""})
        await one.manages("second/a")


@in_loop
async def test_whoever_holds_it_makes_it_anew_when_somebody_deletes_it() -> None:
    async with scene() as one:
        one.begin("first/a")
        await one.manages("first/a")
        one.begin("second/a")
        await one.until(lambda: one.claims["second/a"].other)
        one.kept.spec = None
        await one.until(lambda: one.kept.spec)
        assert one.kept.body["spec"]["holderIdentity"] == "first"
        assert one.works["second/a"].begun == 0


@in_loop
async def test_an_old_lease_of_nobody_locks_nobody_out() -> None:
    async with scene() as one:
        one.kept.put({"holderIdentity": "long-gone", "leaseDurationSeconds": 1, "renewTime": "2999-01-01T00:00:00Z"})
        claim = one.begin("first/a")
        await one.until(lambda: claim.other == "long-gone")
        await one.manages("first/a")


def claim(place: str, holder: str, version: int, created: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    metadata = {"namespace": place, "name": CLAIM.name, "resourceVersion": str(version), "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"holderIdentity": holder}}


EARLIER, LATER = "2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z"
OURS = claim("ours", "me", 1)


def leading(claims: OtherClaims, *found: dict[str, Any]) -> str:
    return claims.leading(msgspec.convert([*found], list[ClaimLease]), "ours")


@pytest.mark.parametrize(
    ("others", "leads"),
    [
        pytest.param([], "", id="no other"),
        pytest.param([claim("kube-system", "other", 1, LATER)], "kube-system", id="kube-system's counts, however new"),
        pytest.param([claim("kube-system", "me", 1, EARLIER)], "", id="...unless it is of ours from before"),
        pytest.param([claim("kube-system", "", 1, EARLIER)], "", id="...or released"),
        pytest.param([claim("theirs", "other", 1, EARLIER)], "theirs", id="the older one counts"),
        pytest.param([claim("theirs", "other", 1, LATER)], "", id="a newer one does not: anyone may have written it"),
        pytest.param([claim("theirs", "other", 1)], "", id="of two of one second, the first by name"),
        pytest.param([claim("a", "other", 1)], "a", id="...for both of them"),
    ],
)
def test_of_two_operators_that_claim_in_different_namespaces_one_leads(others: list[Any], leads: str) -> None:
    assert leading(OtherClaims("me", QUICK), OURS, *others) == leads


def test_before_our_claim_exists_each_other_one_counts() -> None:
    assert leading(OtherClaims("me", QUICK), claim("theirs", "other", 1, LATER)) == "theirs"


def test_a_claim_elsewhere_that_nobody_renews_counts_no_longer_than_a_lease_lasts() -> None:
    now = 0.0
    claims = OtherClaims("me", QUICK, Clock(lambda: now))
    for now, version, leads in ((0, 1, True), (4, 2, True), (8, 2, True), (9.1, 2, False), (10, 3, True)):
        assert bool(leading(claims, claim("kube-system", "gone", version), OURS)) is leads, now

"""What a leader makes of policies for schedulers that no setting lists, and of names that others schedule for."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from fairlead.control.decide.desired import PAUSED
from fairlead.kube.http.transport import Request
from fairlead.kube.resources import VERSION
from support.faults.api import Key, Object
from support.faults.cluster import NAMESPACE, FakeCluster
from support.faults.faults import Wire
from support.faults.leader import until
from support.faults.life import FILTER, POLICY, STAGES, condition, created_objects
from support.faults.stories import begun, with_scheduler, with_settings

LEDGER: Key = ("", "configmaps", NAMESPACE, "fairlead-schedulers")
KIND = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}


def ask(cluster: FakeCluster, scheduler: str, name: str = "", **metadata: Any) -> None:
    """A policy for a scheduler."""
    key = (*POLICY[:3], name or scheduler)
    cluster.api.put(key, {**KIND, "metadata": metadata, "spec": {"schedulerName": scheduler, "filters": FILTER}})


def accepted(cluster: FakeCluster, name: str) -> tuple[str, str]:
    """The reason and the message."""
    for one in cluster.api.objects[*POLICY[:3], name].get("status", {}).get("conditions", ()):
        if one["type"] == "Accepted":
            return one["reason"], one["message"]
    return "", ""


async def refused(cluster: FakeCluster, name: str) -> None:
    await until(f"{name} to be refused", lambda: accepted(cluster, name)[0] == "SchedulerRefused")


def deployed(cluster: FakeCluster) -> set[str]:
    return {key[3].removeprefix("kube-scheduler-") for key in created_objects(cluster, "deployments")}


def schedulers(cluster: FakeCluster) -> set[str]:
    """Of whatever there is."""
    return {
        cluster.api.objects[key]["metadata"]["labels"]["fairlead.dev/scheduler"] for key in created_objects(cluster)
    }


def test_no_more_begin_than_may_and_the_next_when_one_is_gone() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        with with_settings("{maxUnlistedSchedulers: 2, schedulers: [{name: listed}]}"):
            for name in ("b", "a", "listed"):
                ask(cluster, name)
                await asyncio.sleep(2)
            for name in ("c", "d", "e"):
                ask(cluster, name)
            for name in ("c", "d", "e"):
                await refused(cluster, name)
            await asyncio.sleep(500)
            assert schedulers(cluster) == {"a", "b", "listed"}
            assert accepted(cluster, "c")[1].endswith(
                ", and maxUnlistedSchedulers is 2: 2 unlisted ones exist; list it there, or ask "
                "the operator's administrator"
            )
            cluster.api.delete((*POLICY[:3], "a"))
            await until("the next", lambda: deployed(cluster) == {"b", "c", "listed"})
            assert "gone since" in cluster.api.objects[LEDGER]["data"]["a"]
        await until("the rest", lambda: deployed(cluster) == {"b", "c", "d", "e", "listed"})

    begun(story)


def test_many_that_come_at_once_leave_nothing_behind() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        with with_settings("maxUnlistedSchedulers: 2"):
            for number in range(12):
                ask(cluster, f"s{number:02}")
            await until("them", lambda: deployed(cluster) == {"s00", "s01"})
            await asyncio.sleep(300)
            wire.died.set()  # whoever leads next comes to the same
            await asyncio.sleep(300)
            assert schedulers(cluster) == deployed(cluster) == {"s00", "s01"}
            assert {*cluster.api.objects[LEDGER]["data"]} == {"s00", "s01"}

    begun(story)


def test_whoever_is_refused_for_another_reason_takes_nobodys_place() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        for name in ("a", "b"):
            theirs = {"spec": {"schedulerName": name, "nodeName": "n"}, "status": {"phase": "Running"}}
            cluster.api.put(("", "pods", "default", name), theirs)
            ask(cluster, name)
        ask(cluster, "c", annotations={PAUSED: "true"})
        ask(cluster, "default-scheduler")
        ask(cluster, "d")
        with with_settings("maxUnlistedSchedulers: 1"):
            await until("the only one", lambda: deployed(cluster) == {"d"})
            reason, message = accepted(cluster, "default-scheduler")
            assert (reason, "maxUnlistedSchedulers" in message) == ("SchedulerRefused", False)
            assert "default-scheduler is not listed, and is never managed" in message

    begun(story)


def slow(wire: Wire, holds: Callable[[Request], bool]) -> None:
    """Have such requests take their time."""
    once = wire.once

    async def late(ask: Request, *more: Any, **others: Any) -> bytes:
        if holds(ask):
            await asyncio.sleep(10)
        return await once(ask, *more, **others)

    wire.once = late  # type: ignore[method-assign]


def test_whoever_is_let_begin_may_not_any_more_when_it_comes_to_that() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        slow(wire, lambda ask: ask.where == VERSION)
        ask(cluster, "a")
        await asyncio.sleep(5)
        with with_settings("maxUnlistedSchedulers: 0"):
            await until("it to be refused", lambda: accepted(cluster, "a")[0] == "SchedulerRefused")
            await asyncio.sleep(100)
            assert not deployed(cluster)

    begun(story)


def test_what_is_denied_is_not_begun_and_what_runs_goes() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        before = cluster.now()
        with with_settings("unlistedSchedulers: Deny"):
            ask(cluster, "new")
            cluster.api.put(
                ("", "pods", "default", "waits"), {"spec": {"schedulerName": "s"}, "status": {"phase": "Pending"}}
            )
            await until("it to be refused", lambda: accepted(cluster, "new")[0] == "SchedulerRefused")
            await until("it to be refused", lambda: accepted(cluster, "p")[0] == "SchedulerRefused")
            assert "unlistedSchedulers is Deny: list it there" in accepted(cluster, "p")[1]
            assert "is deleted 10 minutes after" in accepted(cluster, "p")[1]
            assert schedulers(cluster) == {"s"}
            await until("its end", lambda: not created_objects(cluster))
            assert cluster.now() - before > timedelta(seconds=60)  # the grace that all have
            await asyncio.sleep(100)
            assert not created_objects(cluster)
        await until("it to be back", lambda: STAGES["the first policy"].done(cluster))

    with_scheduler(story)


def workload(**container: Any) -> Object:
    return {"spec": {"template": {"spec": {"containers": [{"name": "x", **container}]}}}}


LEASE = {"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": "2026-11-21T00:00:00.000000Z"}
THEIRS: dict[str, tuple[Key, Object]] = {
    "Lease others/volcano": (("coordination.k8s.io", "leases", "others", "volcano"), {"spec": LEASE}),
    "Deployment others/x": (
        ("apps", "deployments", "others", "x"),
        workload(image="x", args=["--scheduler-name=volcano"]),
    ),
    "StatefulSet others/x": (("apps", "statefulsets", "others", "x"), workload(image="volcanosh/vc-scheduler:v1")),
    "DaemonSet others/x": (
        ("apps", "daemonsets", "others", "x"),
        workload(command=["x", "--scheduler-name", "volcano"]),
    ),
}


@pytest.mark.parametrize("who", THEIRS)
def test_a_name_that_others_schedule_for_is_refused_though_they_have_placed_nothing(who: str) -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        # the other one is made meanwhile: what all get then is not for one that is refused in the end
        slow(wire, lambda ask: ask.query.get("fieldSelector") == "metadata.name=volcano")
        cluster.api.put(*THEIRS[who])
        ask(cluster, "volcano")
        ask(cluster, "other")
        await until("it to be refused", lambda: accepted(cluster, "volcano")[0] == "SchedulerRefused")
        assert who in accepted(cluster, "volcano")[1]
        assert "list it in the operator's setting schedulers" in accepted(cluster, "volcano")[1]
        await until("the other", lambda: deployed(cluster) == {"other"})
        assert schedulers(cluster) == {"other"}
        cluster.api.delete(THEIRS[who][0])
        await until("it", lambda: deployed(cluster) == {"other", "volcano"})

    begun(story)


RUNNING = {"spec": {"schedulerName": "s", "nodeName": "n"}, "status": {"phase": "Running"}}
SINCE: dict[str, tuple[Key, Object]] = {
    "Lease others/s": (("coordination.k8s.io", "leases", "others", "s"), {"spec": LEASE}),
    "Deployment others/x": (("apps", "deployments", "others", "x"), workload(args=["--scheduler-name=s"])),
    "has placed pods": (("", "pods", "default", "later"), RUNNING),
}


@pytest.mark.parametrize("who", SINCE)
def test_a_name_that_was_ours_and_is_given_up_is_theirs_who_came_after_us(who: str) -> None:
    """Pods that they place keep it noted for ever; whoever once had a policy for a name has not reserved it."""

    async def story(cluster: FakeCluster, _: Wire) -> None:
        ended = STAGES["the last policy's end"]
        ended.act(cluster)
        await until("its end", lambda: ended.done(cluster))
        await asyncio.sleep(100)
        key, theirs = SINCE[who]
        renewed = f"{cluster.now() + timedelta(days=1):%Y-%m-%dT%H:%M:%S.000000Z}"
        cluster.api.put(key, {**theirs, "spec": {**theirs["spec"], "renewTime": renewed}} if "Lease" in who else theirs)
        ask(cluster, "s", "p")
        await refused(cluster, "p")
        assert who in accepted(cluster, "p")[1]
        assert not deployed(cluster)
        cluster.api.delete(key)
        await until("it", lambda: deployed(cluster) == {"s"})

    with_scheduler(story)


def test_a_policy_that_was_for_a_scheduler_of_ours_takes_nobody_elses() -> None:
    """Its status says that a scheduler ran, and that was another one."""

    async def story(cluster: FakeCluster, _: Wire) -> None:
        theirs = {"spec": {"schedulerName": "volcano", "nodeName": "n"}, "status": {"phase": "Running"}}
        cluster.api.put(("", "pods", "default", "theirs"), theirs)
        assert cluster.api.objects[POLICY]["status"]["scheduler"]["lastGoodConfigHash"]
        cluster.api.edit(POLICY, spec={"schedulerName": "volcano"})
        await until("it to be refused", lambda: accepted(cluster, "p")[0] == "SchedulerRefused")
        assert "volcano" not in deployed(cluster)

    with_scheduler(story)


def test_without_the_right_to_look_the_name_is_taken_and_that_is_said() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        denied = {"leases", "deployments"}
        once = wire.once

        async def refusing(ask: Any, *more: Any, **others: Any) -> bytes:
            if ask.verb == "list" and not ask.where.namespace and ask.where.resource.plural in denied:
                wire.lacks, verb = ("",), ask.verb
                try:
                    raise wire._befalls(ask).error(ask)  # type: ignore[union-attr]
                finally:
                    wire.lacks = ()
                    assert verb == "list"
            return await once(ask, *more, **others)

        wire.once = refusing  # type: ignore[method-assign]
        STAGES["the first policy"].act(cluster)
        said = "schedulers run by others cannot be found by their "
        await until("it", lambda: condition(cluster, "Ready")[1] == "Forbidden")
        await until("both", lambda: condition(cluster, "Ready")[2].count(said) == 2)
        assert deployed(cluster) == {"s"}
        denied.clear()
        await until("Ready", lambda: STAGES["the first policy"].done(cluster))

    begun(story)


def test_a_scheduler_that_is_gone_is_forgotten_once_no_pod_names_it() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        ended = STAGES["the last policy's end"]
        ended.act(cluster)
        await until("its end", lambda: ended.done(cluster))
        await asyncio.sleep(7200)
        assert "gone since" in cluster.api.objects[LEDGER]["data"]["s"]  # a pod that it has placed still runs
        STAGES["the first policy"].act(cluster)  # and it is not somebody else's
        await until("Ready", lambda: STAGES["the first policy"].done(cluster))
        assert "gone since" not in cluster.api.objects[LEDGER]["data"]["s"]
        ended.act(cluster)
        await until("its end", lambda: ended.done(cluster))
        for key, one in [*cluster.api.of("pods")]:
            cluster.api.put(key, msgspec.json.decode(msgspec.json.encode({**one, "status": {"phase": "Succeeded"}})))
        await until("it to be forgotten", lambda: "s" not in cluster.api.objects[LEDGER]["data"], 7200)

    with_scheduler(story)


def test_however_many_were_managed_what_is_noted_of_them_stays_small() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        noted = {
            f"{number:03}-{'x' * 59}": f"gone since 2026-11-21T00:00:{number % 60:02}+00:00" for number in range(1000)
        }
        noted["z"] = "2026-11-21T00:00:00+00:00"
        cluster.api.edit(LEDGER, data=noted)
        wire.died.set()
        await asyncio.sleep(60)
        ask(cluster, "more")
        await until("it", lambda: "more" in deployed(cluster))
        held = cluster.api.objects[LEDGER]["data"]
        assert len(held) == len(noted) + 1  # the one that runs, and the new one for the oldest that had gone
        assert len(msgspec.json.encode(held)) < 256 * 1024
        assert "more" in held
        assert "s" in held
        await until(
            "what is not there to be found so", lambda: "gone" in cluster.api.objects[LEDGER]["data"].get("z", "gone")
        )

    with_scheduler(story)

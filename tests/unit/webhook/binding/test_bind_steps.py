"""Binds in two steps: what is committed, what is posted of it later, and what happened to the pod in between."""

import json
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.grants.commit import StalePod
from fairlead.webhook.binding.api_calls import Failed, Uncertain
from fairlead.webhook.binding.bind_steps import CHANGED, BindSteps, Bound, Budget, Committed, NotBound, PodBind
from fairlead.webhook.binding.poster import Poster
from fairlead.webhook.extender import bind
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.call import CallClock, Caller
from fairlead.webhook.extender.requests import BindArgs
from scripted.loop import in_loop
from support.grants.bind_scene import NODE, OTHER, BindScene
from support.grants.cluster import SECOND, Cluster
from support.grants.replica import PickedDevices
from support.policy import NOW

BUDGET = Budget(lambda: 0.0, 8.0)


class Steps:
    """A replica that takes the steps of one bind when it is told to; with `asks`, the pod requests a device."""

    def __init__(self, *, asks: bool = True, decided_at: str = "") -> None:
        self.scene = scene = BindScene(pods={"ns/a": 6 if asks else 0})
        self.steps = BindSteps(scene.a.ledgers, scene.a.calls, scene.a.views)
        pod, self.hung_up = scene.pod("a"), False
        devices = PickedDevices(scene.a, pod)
        if not asks:
            devices._ask = ()
        poster = Poster(scene.a.calls, is_abandoned=lambda: self.hung_up)
        self.call = PodBind(pod.uid, pod.pod, NODE, devices, poster, decided_at)

    def run(self, step: Coroutine[Any, Any, Any]) -> Any:
        """Take a step to its end, with each request answered as it is sent; what it returns."""
        task = self.scene.a.loop.create_task(step)
        self.scene.a.loop.run_ready()
        self.scene.seen.clear()
        self.scene.finish()
        return task.result()

    def commit(self) -> Any:
        return self.run(self.steps.commit(self.call, BUDGET))

    def committed(self) -> Committed:
        made = self.commit()
        assert isinstance(made, Committed)
        return made

    def post(self, committed: Committed) -> Any:
        return self.run(self.steps.post(self.call, committed, BUDGET.left_s))

    def finish(self, committed: Committed) -> Any:
        return self.run(self.steps.bind(self.call, BUDGET, committed))


def test_the_entry_stands_and_nothing_is_posted_until_the_second_step() -> None:
    one = Steps()
    version = one.scene.pod("a").rv
    made = one.committed()
    assert (made.rv, one.scene.entries(), one.scene.seen["post_binding"]) == (version, {"ns/a": "0"}, 0)
    assert one.post(made) == Bound(made.entry)
    assert one.scene.seen == Counter(post_binding=1)
    assert one.scene.pod("a").node == NODE


def test_a_pod_that_requests_no_devices_is_committed_without_a_request() -> None:
    one = Steps(asks=False)
    made = one.committed()
    assert (made, one.scene.seen) == (Committed(one.scene.pod("a").rv), Counter())
    assert one.post(made) == Bound(None)
    assert (one.scene.seen, one.scene.server.ledgers) == (Counter(post_binding=1), {})


@pytest.mark.parametrize("asks", [True, False], ids=["devices", "none"])
def test_what_is_posted_names_the_version_that_was_committed(asks: bool) -> None:
    one = Steps(asks=asks)
    made = one.committed()
    task = one.scene.a.loop.create_task(one.steps.post(one.call, made, BUDGET.left_s))
    one.scene.a.loop.run_ready()
    metadata = one.scene.until("post_binding").args[0]["metadata"]
    assert (metadata["uid"], metadata["resourceVersion"]) == (one.call.uid, made.rv)
    assert ("annotations" in metadata) == asks
    task.cancel()


@pytest.mark.parametrize("asks", [True, False], ids=["devices", "none"])
def test_a_pod_that_changed_while_it_was_held_is_not_bound_at_its_old_version(asks: bool) -> None:
    one = Steps(asks=asks)
    made = one.committed()
    one.scene.server.change_pod("ns/a")
    assert one.post(made) == StalePod()
    one.scene.a.views.advance_pods(9)
    again = one.commit()
    assert again.rv == one.scene.pod("a").rv
    assert isinstance(one.post(again), Bound)


def test_the_steps_are_taken_once_more_for_a_pod_that_changed() -> None:
    one = Steps()
    made = one.committed()
    one.scene.server.change_pod("ns/a")
    result = one.finish(made)
    assert isinstance(result, Bound)
    assert (one.scene.seen["post_binding"], one.scene.seen["read_pod"]) == (2, 1)
    assert one.scene.server.ledgers[NODE].entries[one.call.uid].rv != made.rv


def test_what_was_committed_is_not_committed_once_more() -> None:
    one = Steps()
    made = one.committed()
    assert one.finish(made) == Bound(made.entry)
    assert one.scene.seen == Counter(post_binding=1)


GONE = NotBound("the pod no longer exists")
BETWEEN: dict[str, tuple[Callable[[BindScene], object], object]] = {
    "gone": (lambda scene: scene.server.delete_pod("ns/a"), GONE),
    "bound there": (lambda scene: scene.server.change_pod("ns/a", node=NODE), Bound(None)),
    "bound elsewhere": (
        lambda scene: scene.server.change_pod("ns/a", node=OTHER),
        NotBound(f"the pod is already bound to node {OTHER}"),
    ),
    "ended": (lambda scene: scene.server.change_pod("ns/a", ended=True), NotBound("the pod has ended")),
}


@pytest.mark.parametrize("case", BETWEEN)
@pytest.mark.parametrize("asks", [True, False], ids=["devices", "none"])
def test_what_happened_while_it_was_held_is_found_before_anything_is_posted(case: str, asks: bool) -> None:
    happen, want = BETWEEN[case]
    one = Steps(asks=asks)
    one.committed()
    happen(one.scene)
    one.scene.a.views.advance_pods(9)
    assert one.commit() == want
    assert one.scene.seen["post_binding"] == 0


@pytest.mark.parametrize(
    ("asks", "outcome", "may_stand"),
    [
        (True, Failed("forbidden"), True),
        (True, Uncertain("timed out"), True),
        (False, Failed("forbidden"), False),
        (False, Uncertain("timed out"), True),
    ],
)
def test_what_may_stand_after_a_binding_that_failed(asks: bool, outcome: Failed | Uncertain, may_stand: bool) -> None:
    one = Steps(asks=asks)
    made = one.committed()
    task = one.scene.a.loop.create_task(one.steps.post(one.call, made, BUDGET.left_s))
    one.scene.a.loop.run_ready()
    one.scene.until("post_binding").answer(outcome)
    assert task.result() == NotBound(outcome.why, may_stand)


def test_nothing_is_posted_for_a_caller_that_hung_up_while_it_was_held() -> None:
    one = Steps(asks=False)
    made = one.committed()
    one.hung_up = True
    assert one.finish(made) == NotBound("the caller has hung up")
    assert one.scene.seen == Counter()


@pytest.mark.parametrize(("decided_at", "reads"), [("", 0), ("this one", 0), ("another one", 1)])
def test_a_view_of_another_version_than_was_decided_about_is_not_believed(decided_at: str, reads: int) -> None:
    one = Steps(asks=False)
    version = one.scene.pod("a").rv
    one.call = PodBind(
        one.call.uid,
        one.call.pod,
        NODE,
        one.call.devices,
        one.call.poster,
        version if decided_at == "this one" else decided_at,
    )
    assert one.committed().rv == version
    assert one.scene.seen == Counter(read_pod=reads)


def _decided(cluster: Cluster, name: str, **annotations: str) -> BindDecision:
    request = BindArgs(name, "ml", cluster.api.pods[f"ml/{name}"].uid, "n1")
    pod = cluster.state.unplaced(request)
    made = bind.decide_bind(
        request, pod, cluster.state, Caller(schedulers=frozenset({"fairlead"})), CallClock(NOW, lambda: 0, SECOND)
    )
    assert isinstance(made, BindDecision)
    return BindDecision(request, annotations, made.conflicts, made.devices, made.pod)


@in_loop
async def test_a_decision_without_devices_is_committed_and_posted_with_its_annotations() -> None:
    cluster = Cluster()
    cluster.make("a", 0)
    decision = _decided(cluster, "a", team="x")
    call = cluster.granter.pod_bind(decision, Poster(cluster.server, is_abandoned=lambda: False))
    made = await cluster.granter.steps.commit(call, BUDGET)
    assert made == Committed(cluster.api.pods["ml/a"].rv)
    result = await cluster.granter.steps.post(call, made, BUDGET.left_s)
    assert isinstance(result, Bound)
    reply = cluster.granter.reply(decision, result, NOW)
    assert (json.loads(reply.body), cluster.results) == ({"Error": ""}, [])
    assert cluster.annotations() == {"team": "x"}
    assert cluster.server.bindings[-1]["metadata"]["resourceVersion"] == made.rv


@in_loop
async def test_a_pod_without_devices_whose_labels_changed_is_not_committed() -> None:
    cluster = Cluster()
    cluster.make("a", 0)
    call = cluster.granter.pod_bind(_decided(cluster, "a"), Poster(cluster.server, is_abandoned=lambda: False))
    cluster.api.change_pod("ml/a")
    cluster.server.metadata_hashes["ml/a"] = 1
    older = replace(call, decided_at="older")  # so that it is read
    assert await cluster.granter.steps.commit(older, BUDGET) == NotBound(CHANGED)


def test_a_budget_ends_at_its_deadline() -> None:
    time = 3 * SECOND
    budget = Budget.until(11 * SECOND, lambda: time)
    assert (budget.left_s(), budget.commit_left_s()) == (8.0, 6.0)
    time = 10 * SECOND
    assert (budget.left_s(), budget.commit_left_s()) == (1.0, -1.0)

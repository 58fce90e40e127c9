"""Publication of what was learned: each outcome once, whatever becomes of a write."""

from typing import Any, Final

import pytest

from fairlead.cooperative import Steps, T, finish
from fairlead.kube.errors import ClusterError, ForbiddenError, RequestError, UnreachableError
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.learned.learner import PairLearner
from fairlead.learned.pair import Observation
from fairlead.learned.pairs import Meaning, shard_of
from fairlead.learned.published import LearningRule, decode, names_of
from fairlead.webhook.learning.publisher import Publisher
from scripted.loop import in_loop
from support.learned.api import StateApi

NOW: Final = 1_800_000_000
RULE: Final = LearningRule("p", "u-p", "works", "meaning", 1)
KEY: Final = ("ml/web", "node-key-1")
SHARD: Final = shard_of(KEY)
NAME: Final = names_of(RULE, SHARD)[0]
LOST: Final = UnreachableError("update", CONFIG_MAPS, "no answer")


async def without_pauses(steps: Steps[T]) -> T:
    return finish(steps)


class Leader:
    """A replica that leads."""

    def __init__(self, api: StateApi, rule: LearningRule = RULE) -> None:
        self.api, self.results = api, list[str]()
        self.learner = PairLearner(rule, Meaning(3600))
        self.learner.versions.is_listed = True
        self.publisher = Publisher(api, "ops", lambda: NOW * 10**9, without_pauses, self.results.append)

    def observe(self, *ids: str) -> None:
        for one in ids:
            self.learner.observe(Observation(*KEY[:1], "ml", KEY[1], NOW - 10, one, 0.0))

    async def publish(self) -> float | None:
        """Return the weight that is published then."""
        await self.publisher.publish(self.learner)
        stored = self.api.objects.get(NAME)
        state = None if stored is None else decode(stored)
        pairs: Any = None if state is None else state.document.value
        return pairs[KEY].weight if pairs else None


@in_loop
async def test_it_is_created_and_then_replaced() -> None:
    leader = Leader(StateApi())
    assert await leader.publish() is None
    leader.observe("a", "b")
    assert await leader.publish() == 2.0
    assert await leader.publish() == 2.0
    leader.observe("b", "c")
    assert await leader.publish() == 3.0
    assert leader.api.writes == [f"create {NAME}", f"replace {NAME}"]
    assert (leader.results, leader.learner.pending) == (["written"] * 2, 0)


@pytest.mark.parametrize("is_carried_out", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
@in_loop
async def test_a_write_without_an_answer_is_made_again_and_counts_once(is_carried_out: bool, is_first: bool) -> None:
    leader = Leader(StateApi())
    if not is_first:
        leader.observe("before")
        await leader.publish()
    leader.observe("a")
    if is_carried_out:
        leader.api.lose = LOST
    else:
        leader.api.refuse = LOST
    await leader.publish()
    assert leader.learner.pending == 1
    assert await leader.publish() == (1.0 if is_first else 2.0)
    assert leader.learner.pending == 0


@in_loop
async def test_two_leaders_count_the_same_outcomes_once() -> None:
    api = StateApi()
    one, other = Leader(api), Leader(api)
    for leader in (one, other):
        leader.observe("a", "b")
    one.observe("c")
    assert await one.publish() == 3.0
    other.observe("d")
    assert await other.publish() == 3.0
    assert other.results == ["conflict"]
    assert await other.publish() == 4.0
    one.observe("e")
    await one.publish()
    assert await one.publish() == 5.0
    assert (one.learner.pending, other.learner.pending) == (0, 0)


@in_loop
async def test_one_that_was_deleted_by_hand_begins_anew() -> None:
    leader = Leader(StateApi())
    leader.observe("a")
    await leader.publish()
    del leader.api.objects[NAME]
    leader.observe("b")
    assert await leader.publish() == 2.0


@in_loop
async def test_what_a_newer_version_of_fairlead_wrote_is_left_alone() -> None:
    leader = Leader(StateApi())
    leader.observe("a")
    await leader.publish()
    newer = leader.api.objects[NAME]
    newer["data"]["pairs"] = newer["data"]["pairs"].replace('"v":1', '"v":2')
    leader.api.touch(NAME)
    leader.observe("b")
    await leader.publish()
    await leader.publish()
    assert leader.api.writes == [f"create {NAME}"]
    assert leader.api.objects[NAME] is newer


@in_loop
async def test_a_name_that_somebody_else_uses_is_not_written() -> None:
    api = StateApi()
    api.objects[NAME] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "resourceVersion": "1"}}
    leader = Leader(api)
    leader.observe("a")
    await leader.publish()
    await leader.publish()
    longer = names_of(RULE, SHARD)[1]
    assert api.writes == [f"create {longer}"]
    assert "data" not in api.objects[NAME]


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        (ForbiddenError("create", CONFIG_MAPS, "configmaps is forbidden", status=403), "configmaps is forbidden"),
        (RequestError("create", CONFIG_MAPS, "it is full", status=507), ""),
    ],
)
@in_loop
async def test_a_refusal_is_counted_and_tried_again(error: ClusterError, missing: str) -> None:
    leader = Leader(StateApi())
    leader.observe("a")
    leader.api.refuse = error
    assert await leader.publish() is None
    assert missing in leader.publisher.missing
    assert await leader.publish() == 1.0
    assert (leader.results, leader.publisher.missing) == (["failed", "written"], "")

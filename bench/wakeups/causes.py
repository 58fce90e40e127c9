"""Causes that may help a rejected pod: each provokes one, once, and returns how long it took.

The time begins just before the request that causes it, and ends when the API server shows that all pods have a node. Of
what no request causes, such as the end of a rest, it begins at the moment that is told: the replica that holds
publishes until when a group rests, to a tenth of a second, and from that and the length of a rest follows when the
attempt failed. The moment at which that is published is not used, for it comes later.

In a quiet cluster no wake-up came lately, so the pause after the last one is waited for first. Within it, a pod waits
up to five seconds longer (a second longer for groups). The leader hears of the first rejected pod after up to ten
seconds, and polls each second from then on. The pods here are rejected some seven seconds before, so that a few of them
wait for that up to three seconds.
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from bench import operating
from bench.stage import NAME, PODS
from bench.wakeups.scene import LOOK_S, NODES, Scene
from fairlead.control.loop.waker import REQUESTED_S
from fairlead.groups.group import Group, group_hash
from fairlead.groups.rests import RESTS_S, SHORTENED_S
from fairlead.groups.turns import PLACING, WAITING, PublishedRest
from testbed.api import wait_for

_HOLD_OFF_S: Final = 3
_FRESH_S: Final = 30
_POOL: Final = "example.org/pool"
_LARGE: Final = "40"
"""Processors of which a node has enough for one pod, not for two."""
_LONG_S: Final = 20
"""Length of the first rest that is shortened when room comes: of those that are longer than `SHORTENED_S`."""


def policy_edited(scene: Scene) -> float:
    """Edit a policy that rejects every node."""
    reject = {"name": "never", "expression": "node.metadata.name == 'nowhere'", "reason": "not yet"}
    scene.put("edited", filters=[reject])
    name = scene.rejected_pod("edited")
    passing = {"filters": [{**reject, "expression": "node.metadata.name != 'nowhere'"}]}
    at = time.time()
    scene.stage.api.patch(f"{operating.POLICIES}/edited", {"spec": passing})
    return scene.bound_at(name) - at


def measured_value(scene: Scene) -> float:
    """Let the value of a node fall."""
    return _value_helps(scene, "measured", {"value": 9.0}, {"value": 1.0})


def value_grown_fresh(scene: Scene) -> float:
    """Measure a value again that is too old."""
    return _value_helps(scene, "stale", {"value": 1.0, "age_s": 2 * _FRESH_S}, {"value": 1.0})


def hold_off_over(scene: Scene) -> float:
    """Let a node be ready for as long as it has to be."""
    readiness = {"labels": [{"key": "example.org/warm", "value": "true"}], "holdOff": f"{_HOLD_OFF_S}s"}
    scene.put("holdoff", filters=[{"name": "warm", "nodeReadiness": readiness}])
    node = scene.nodes[0]
    scene.label(node, warm=None)
    name = scene.rejected_pod("holdoff")
    at = time.time()
    scene.label(node, warm="true")
    return scene.bound_at(name) - (at + _HOLD_OFF_S)


def node_seen(scene: Scene) -> float:
    """Let a node join."""
    late = {"name": "late", "expression": "node.metadata.name.startsWith('late-')", "reason": "not that one"}
    scene.put("joins", filters=[late])
    name = scene.rejected_pod("joins")
    like, joins = scene.stage.api.get(f"{NODES}/{scene.nodes[0]}"), f"late-{next(scene.numbers)}"
    about = {"name": joins, **{key: like["metadata"].get(key, {}) for key in ("labels", "annotations")}}
    at = time.time()
    scene.stage.api.create(NODES, {"metadata": about, "spec": {}, "status": like["status"]})
    took = scene.bound_at(name) - at
    scene.clear()
    scene.stage.api.delete(f"{NODES}/{joins}")
    return took


def member_come(scene: Scene) -> float:
    """Make the last member of a group."""
    group = f"g{next(scene.numbers)}"
    first = scene.pod("groups", group)
    scene.wait_until_said(WAITING, first)
    scene.wait_until_quiet(REQUESTED_S)
    at = time.time()
    return scene.bound_at(scene.pod("groups", group), first) - at


def rest_over(scene: Scene) -> float:
    """Let a group rest after an attempt that failed, and make room for it meanwhile."""
    failing = _failing(scene)
    rest = failing.rests(scene)
    scene.stage.api.delete(f"{PODS}/{failing.blocker}")
    return scene.bound_at(*failing.members) - rest.until


def turn_free(scene: Scene) -> float:
    """Let the group fail that has the turn while another one waits for it."""
    while True:
        group = f"g{next(scene.numbers)}"
        waiting = [scene.pod("groups", group)]
        scene.wait_until_said(WAITING, *waiting)
        scene.wait_until_quiet(REQUESTED_S)
        failing = _failing(scene)
        waiting.append(scene.pod("groups", group))
        rest = failing.rests(scene)
        failed = rest.until - RESTS_S[0]
        has_waited = any(PLACING in scene.says(one) for one in waiting)
        at = scene.bound_at(*waiting)
        if has_waited and at > failed:
            return at - failed
        scene.clear()  # it came before the other one, or after it


def room_made(scene: Scene) -> float:
    """Delete a pod in whose place a group fits that rests, once its rest may end early."""
    failing = _failing(scene)
    rest = failing.rests(scene)
    while rest.until - time.time() <= SHORTENED_S + 1:  # it is published to a tenth of a second
        rest = failing.rests(scene, rest.attempt)
    may_end = rest.until - _LONG_S + SHORTENED_S
    wait_for("the least time of a rest", lambda: time.time() > may_end, every_s=LOOK_S)
    at = time.time()
    scene.stage.api.delete(f"{PODS}/{failing.blocker}")
    return scene.bound_at(*failing.members) - at


CAUSES: Final[Mapping[str, Callable[[Scene], float]]] = {
    "a policy is edited": policy_edited,
    "a measured value changes": measured_value,
    "a value that was too old is measured again": value_grown_fresh,
    "a hold-off is over": hold_off_over,
    "a node joins": node_seen,
    "the last member of a group comes": member_come,
    "the rest of a group is over": rest_over,
    "the turn is free, as the group that had it failed": turn_free,
    "a pod goes, and a group that rests fits": room_made,
}
"""By cause, what provokes it once, and returns the seconds until the pods had their nodes."""


def _value_helps(scene: Scene, cause: str, bad: Mapping[str, float], good: Mapping[str, float]) -> float:
    """Write a value that keeps pods from a node, the only one that has a value, and then one that does not."""
    entry = {"name": "load", "configMap": {"name": cause}, "maxAge": f"{_FRESH_S}s"}
    _put_value(scene, cause, **bad)
    scene.put(cause, data=[entry], filters=[{"name": "load", "expression": "data.load < 5.0", "reason": "busy"}])
    name = scene.rejected_pod(cause)
    at = time.time()
    _put_value(scene, cause, **good)
    return scene.bound_at(name) - at


def _put_value(scene: Scene, name: str, value: float, age_s: float = 0.0) -> None:
    """Write a value. One from before the node was made would count as that of an earlier node."""
    measured = datetime.now(UTC) - timedelta(seconds=age_s)
    scene.put_values(name, values={scene.nodes[0]: value}, at=f"{measured:%Y-%m-%dT%H:%M:%SZ}")


class _Failing(NamedTuple):
    """Group that has room for one of its two members, and the pod that has the room of the other."""

    group: str
    members: list[str]
    blocker: str

    def rests(self, scene: Scene, after: int = 0) -> PublishedRest:
        """Wait until the group rests after an attempt with a greater number than that, and return the rest."""
        of = group_hash(Group(NAME, NAME, self.group))
        return wait_for(
            f"{self.group} to rest",
            lambda: one if (one := scene.turns().rests.get(of)) is not None and one.attempt > after else None,
            every_s=LOOK_S,
        )


def _failing(scene: Scene) -> _Failing:
    """Make a group that fails. It has nodes of its own, of which the last one is blocked."""
    number = next(scene.numbers)
    group, pool, nodes = f"g{number}", f"p{number}", scene.nodes[1:3]
    for node in nodes:
        scene.label(node, pool=pool)
    blocker = scene.pod("blocks", on=nodes[-1], cpu=_LARGE)
    members = [scene.pod("groups", group, selector={_POOL: pool}, cpu=_LARGE) for _ in range(2)]
    return _Failing(group, members, blocker)

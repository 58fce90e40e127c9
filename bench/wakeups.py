"""Time from what may help a rejected pod until it has its node: a real kube-scheduler, two replicas and 100 nodes.

Each cause is provoked many times, one pod or one group at a time: `python -m bench.wakeups`, an hour for 50 times.
Of what happens at a moment that nothing tells, such as the end of a rest, the moment is the one that was foreseen.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import yaml

from bench import operating, page
from bench.report import Target
from bench.scheduler import scheduler_running
from bench.stage import NAME, PODS, Stage, stage_running
from bench.wakeups_report import Row, table
from fairlead.control.loop.controller import now
from fairlead.control.loop.waker import PAUSE_S
from fairlead.groups.group import Group, group_hash
from fairlead.groups.turns import WAITING, Turns, read_turns, turns_name
from fairlead.pki.authority import LEAF_LIFE
from fairlead.pki.identities import scheduler_identity
from fairlead.pki.issuing import issue_leaf
from testbed.api import Object, wait_for

NODES: Final = 100
PAGE: Final = Path(__file__).parents[1] / "docs" / "guide" / "refused-pods.md"
BEGIN: Final = "<!-- begin of wake-ups: written by python -m bench.wakeups -->"
END: Final = "<!-- end of wake-ups -->"
_CAUSE: Final = "example.org/cause"
_GROUP: Final = "example.org/group"
_LOOK_S: Final = 0.02
_LONGEST_S: Final = 120.0
_HOLD_OFF_S: Final = 3
_REST_LEAST_S: Final = 10.0
_LONGER_S: Final = 5.0
"""By so much the rest that is looked at is longer than the least, so that its end is not what starts the group."""
_CONFIG_MAPS: Final = f"/api/v1/namespaces/{operating.NAMESPACE}/configmaps"
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster with a scheduler and replicas, of which pods of one cause at a time make use."""

    stage: Stage
    replicas: Sequence[operating.Asked]
    numbers: Iterator[int]

    def put(self, cause: str, **spec: Any) -> float:
        """Write a policy for the pods of a cause, wait until it serves, and return when it was written."""
        path = f"{operating.POLICIES}/{cause}"
        whole = {"schedulerName": NAME, "match": {"podSelector": {"matchLabels": {_CAUSE: cause}}}} | spec
        at = time.time()
        if self.stage.api.exists(path):
            made = self.stage.api.patch(path, {"spec": whole})
        else:
            kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
            made = self.stage.api.create(operating.POLICIES, {**kind, "metadata": {"name": cause}, "spec": whole})
        operating.wait_until_served(self.replicas, made)
        return at

    def values(self, name: str, **document: Any) -> float:
        """Write a document of values, and return when."""
        data = {"values.json": json.dumps(document)}
        at = time.time()
        if self.stage.api.exists(f"{_CONFIG_MAPS}/{name}"):
            self.stage.api.patch(f"{_CONFIG_MAPS}/{name}", {"data": data})
        else:
            self.stage.api.create(_CONFIG_MAPS, {"metadata": {"name": name}, "data": data})
        return at

    def pod(
        self, cause: str, group: str = "", *, on: str = "", selector: Mapping[str, str] = _NONE, cpu: str = "1"
    ) -> str:
        """Make a pod, and return its name."""
        name = f"{cause}-{next(self.numbers)}"
        container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}
        spec: Object = {
            "schedulerName": NAME,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "nodeSelector": dict(selector),
            "containers": [container],
        }
        labels = {_CAUSE: cause} | ({_GROUP: group} if group else {})
        self.stage.api.create(
            PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec | ({"nodeName": on} if on else {})}
        )
        return name

    def refused(self, name: str, text: str = "") -> None:
        """Wait until the scheduler says that a pod found no node, and the pause after the last wake-up is over."""
        wait_for(
            f"{name} to be refused",
            lambda: (bool(said := self.says(name)) and text in said) or None,
            every_s=_LOOK_S,
        )
        at = time.monotonic()
        wait_for("the pause between wake-ups", lambda: time.monotonic() - at > PAUSE_S + 1 or None)

    def says(self, name: str) -> str:
        """Return what the scheduler says of a pod that has no node; "" if nothing."""
        conditions = self.stage.api.get(f"{PODS}/{name}").get("status", {}).get("conditions", [])
        return next((str(one.get("message", "")) for one in conditions if one["type"] == "PodScheduled"), "")

    def bound(self, *names: str) -> float:
        """Wait until all of these pods have a node, and return when."""

        def are_bound() -> bool:
            return all(self.stage.api.get(f"{PODS}/{name}")["spec"].get("nodeName") for name in names)

        wait_for(f"{names} to be bound", lambda: are_bound() or None, every_s=_LOOK_S, timeout_s=_LONGEST_S)
        return time.time()

    def turns(self) -> Turns:
        """Return what the holder publishes."""
        found = read_turns(self.stage.api.get(f"{_CONFIG_MAPS}/{turns_name(NAME)}")).value
        return found or Turns()

    def rest_of(self, group: str) -> float:
        """Wait until a group rests, and return until when."""
        of = _hash(group)
        return wait_for(f"{group} to rest", lambda: self.turns().rests.get(of), every_s=_LOOK_S).until

    def clear(self) -> None:
        """Delete all pods."""
        self.stage.delete_pods()


Cause = Callable[[Scene], float]
"""Provokes it once, and returns the seconds until the pod had its node."""
_NEVER: Final = [{"name": "never", "expression": "node.metadata.name == 'nowhere'", "reason": "not yet"}]


def policy_edited(scene: Scene) -> float:
    """Edit a policy that rejects every node."""
    scene.put("edited", filters=_NEVER)
    name = scene.pod("edited")
    scene.refused(name)
    passing = {"filters": [{"name": "never", "expression": "node.metadata.name != 'nowhere'"}]}
    at = time.time()
    scene.stage.api.patch(f"{operating.POLICIES}/edited", {"spec": passing})
    return scene.bound(name) - at


def measured_value(scene: Scene) -> float:
    """Let the value of a node fall."""
    return _value_grows_good(scene, {"values": 9.0}, {"values": 1.0})


def value_grown_fresh(scene: Scene) -> float:
    """Measure again what is too old."""
    return _value_grows_good(
        scene,
        {"values": 1.0, "at": "2026-01-31T08:00:00Z"},
        {"values": 1.0, "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"},
    )


def hold_off_over(scene: Scene) -> float:
    """Let a node be ready for as long as it has to be."""
    node, key = _node(scene), f"example.org/warm-{next(scene.numbers)}"
    readiness = {"labels": [{"key": key, "value": "true"}], "holdOff": f"{_HOLD_OFF_S}s"}
    scene.put("holdoff", filters=[{"name": "warm", "nodeReadiness": readiness}])
    name = scene.pod("holdoff")
    scene.refused(name)
    at = time.time()
    scene.stage.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {key: "true"}}})
    took = scene.bound(name) - at - _HOLD_OFF_S
    scene.stage.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {key: None}}})
    return took


def node_seen(scene: Scene) -> float:
    """Let a node join."""
    joined = f"joined-{next(scene.numbers)}"
    scene.put("joins", filters=[{"name": "new", "expression": f"node.metadata.name == '{joined}'", "reason": "old"}])
    name = scene.pod("joins")
    scene.refused(name)
    made = scene.stage.api.get(f"/api/v1/nodes/{_node(scene)}")
    kept = {key: made["metadata"].get(key, {}) for key in ("labels", "annotations")}
    at = time.time()
    scene.stage.api.create(
        "/api/v1/nodes", {"metadata": {"name": joined, **kept}, "spec": {}, "status": made["status"]}
    )
    took = scene.bound(name) - at
    scene.clear()
    scene.stage.api.delete(f"/api/v1/nodes/{joined}")
    return took


def member_come(scene: Scene) -> float:
    """Make the last member of a group."""
    group = f"g{next(scene.numbers)}"
    first = scene.pod("groups", group)
    scene.refused(first, WAITING)
    at = time.time()
    return scene.bound(first, scene.pod("groups", group)) - at


def rest_over(scene: Scene) -> float:
    """Let a group rest after an attempt that failed, and make room for it meanwhile."""
    failing = _fails(scene)
    until = scene.rest_of(failing.group)
    scene.stage.api.delete(f"{PODS}/{failing.blocker}")
    return scene.bound(*failing.members) - until


def turn_free(scene: Scene) -> float:
    """Let the group fail that has the turn while another one waits."""
    failing = _fails(scene)
    of = _hash(failing.group)
    wait_for("it to have the turn", lambda: _has_turn(scene, of) or None, every_s=_LOOK_S / 4)
    others = [scene.pod("groups", f"g{failing.group}") for _ in range(2)]
    scene.rest_of(failing.group)
    at = time.time()
    return scene.bound(*others) - at


def room_made(scene: Scene) -> float:
    """Delete a pod in whose place a group fits that rests, once its rest may end early."""
    failing = _fails(scene)
    while (until := scene.rest_of(failing.group)) - time.time() < _REST_LEAST_S + _LONGER_S:
        wait_for("its next rest", lambda until=until: scene.rest_of(failing.group) > until or None)  # type: ignore[misc]
    began = time.time()
    wait_for("the least time of a rest", lambda: time.time() - began >= _REST_LEAST_S or None)
    at = time.time()
    scene.stage.api.delete(f"{PODS}/{failing.blocker}")
    return scene.bound(*failing.members) - at


CAUSES: Final[Mapping[str, Cause]] = {
    "a policy is edited": policy_edited,
    "a measured value changes": measured_value,
    "a value that was too old is measured again": value_grown_fresh,
    "a hold-off is over": hold_off_over,
    "a node joins": node_seen,
    "the last member of a group comes": member_come,
    "the rest of a group is over": rest_over,
    "the group that had the turn failed": turn_free,
    "a pod goes, and a group fits that rests": room_made,
}
TARGETS: Final = Target("s", below=3), Target("s", below=10)
"""Of the median, and of the slowest of a hundred."""


def main() -> int:
    """Measure, print and write the page."""
    given = _parser().parse_args()
    rows = list[Row]()
    with _scene() as scene:
        for title, cause in CAUSES.items():
            if given.only not in title:
                continue
            took = list[float]()
            for _ in range(given.times):
                took.append(cause(scene))
                scene.clear()
            slowest = quantiles(took, n=100, method="inclusive")[98] if len(took) > 1 else took[0]
            rows.append(Row(title, len(took), median(took), slowest))
            print(f"{title}: {len(took)} times, median {median(took):.2f} s, p99 {slowest:.2f} s", flush=True)
    if given.page:
        page.put_between(BEGIN, [*table(rows, *TARGETS), "", page.when_and_where()], END, PAGE)
    return 0


def _node(scene: Scene) -> str:
    return str(scene.stage.api.items("/api/v1/nodes")[0]["metadata"]["name"])


def _value_grows_good(scene: Scene, bad: Mapping[str, Any], good: Mapping[str, Any]) -> float:
    """Write a value that keeps a pod from its node, then one that does not; each time in a document of its own."""
    node, name = _node(scene), f"values-{next(scene.numbers)}"
    scene.values(name, **{**bad, "values": {node: bad["values"]}})
    entry = {"name": "load", "configMap": {"name": name}, "maxAge": "5m"}
    scene.put("measured", data=[entry], filters=[{"name": "load", "expression": "data.load < 5.0", "reason": "busy"}])
    pod = scene.pod("measured")
    scene.refused(pod)
    at = scene.values(name, **{**good, "values": {node: good["values"]}})
    return scene.bound(pod) - at


class _Failing(NamedTuple):
    """Group that has room for one of its two members, and what blocks the other."""

    group: str
    members: list[str]
    blocker: str


def _fails(scene: Scene) -> _Failing:
    pool = f"p{next(scene.numbers)}"
    first, last = (str(one["metadata"]["name"]) for one in scene.stage.api.items("/api/v1/nodes")[:2])
    for node in (first, last):
        scene.stage.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"pool": pool}}})
    blocker = scene.pod("blocks", on=last, cpu="40")
    group = f"g{next(scene.numbers)}"
    return _Failing(group, [scene.pod("groups", group, selector={"pool": pool}, cpu="40") for _ in range(2)], blocker)


def _hash(group: str) -> str:
    return group_hash(Group(NAME, NAME, group))


def _has_turn(scene: Scene, of: str) -> bool:
    turns = scene.turns()
    return (turns.turn is not None and turns.turn.group == of) or of in turns.rests


@contextmanager
def _scene() -> Iterator[Scene]:
    with (
        stage_running(NODES, name="bench-wakeups") as stage,
        operating.replicas_running(stage.api, stage.kubeconfig, 2) as replicas,
    ):
        scene = Scene(stage, operating.asking(stage.kubeconfig, replicas), count())
        gang = {"name": "jobs", "group": f"pod.metadata.labels[?'{_GROUP}'].orValue('')", "size": "2", "holdFor": "30s"}
        scene.put("groups", binding={"gang": [gang]})
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            entries = _entries(stage, folder, replicas[0])
            with scheduler_running(folder, stage.kubeconfig, NAME, entries, NODES):
                yield scene


def _entries(stage: Stage, folder: Path, replica: operating.Replica) -> list[dict[str, Any]]:
    """Return the extenders that the operator publishes for the scheduler, with the files and the address of here."""
    authority = operating.authority_of(stage.kubeconfig)
    pair = issue_leaf(authority.signing, scheduler_identity(NAME), "client", now(), LEAF_LIFE)
    for file, content in {
        "ca.crt": authority.server_ca_bundle,
        "tls.crt": pair.certificate,
        "tls.key": pair.key,
    }.items():
        (folder / file).write_bytes(content)
    published = wait_for("the configuration", lambda: _published(stage))
    made = []
    for one in published:
        path = one["urlPrefix"].partition("//")[2].partition("/")[2]
        files = {
            key: str(folder / file)
            for key, file in (("caFile", "ca.crt"), ("certFile", "tls.crt"), ("keyFile", "tls.key"))
        }
        host = f"fairlead.{operating.NAMESPACE}.svc"
        address = f"https://{replica.address}:{replica.port}"
        made.append({**one, "urlPrefix": f"{address}/{path}".rstrip("/"), "tlsConfig": {**files, "serverName": host}})
    return made


def _published(stage: Stage) -> list[dict[str, Any]] | None:
    """Return the published extenders, once those are among them that groups need."""
    path = f"{_CONFIG_MAPS}/kube-scheduler-{NAME}"
    if not stage.api.exists(path):
        return None
    found = list(yaml.safe_load(stage.api.get(path)["data"]["config.yaml"])["extenders"])
    return found if any(one.get("bindVerb") for one in found) else None


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="bench.wakeups", description=__doc__.partition("\n")[0] if __doc__ else "")
    made.add_argument("--times", type=int, default=50, help="how often each cause is provoked (default: %(default)s)")
    made.add_argument("--only", default="", help="measure only causes with this text in their title")
    made.add_argument("--page", action=argparse.BooleanOptionalAction, default=True, help="write the guide's page")
    return made


if __name__ == "__main__":
    raise SystemExit(main())

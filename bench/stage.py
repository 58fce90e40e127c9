"""Stage of the measurements with a real kube-scheduler: the cases, a cluster with nodes, pods, and the extenders.

`throughput` places pods as fast as it goes, `calm` at a pace that leaves the processors idle half of the time. Both
compare the same extenders in the same cases, so that their figures can be read together.
"""

import random
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench import cluster, programs
from bench.programs import Extender
from bench.scheduler import Wiring
from bench.throughput_report import Target
from fairlead.render.scheduler_settings import SchedulerDefaults
from testbed import node_template, nodes
from testbed.api import Api, Object, wait_for
from testbed.node_template import Alternative, Pool, Template
from testbed.providers import Local

NAME: Final = cluster.SCHEDULER
"""Of the scheduler and of its namespace."""
CLUSTER: Final = "bench"
NONE: Final = "no extender"
OWN: Final = "fairlead"
KEPT: Final = ", connection kept"
OVER_TLS: Final = " over TLS"
"""Suffixes of the peer `limit`: variants that show what a new connection for each call costs, and TLS."""
RECORDED: Final = "recorded replies"
"""The peer `limit` over TLS, which sends what Fairlead replied once: Fairlead without the time that it computes."""
PODS: Final = f"/api/v1/namespaces/{NAME}/pods"
GONE_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Case:
    """Work that the extenders are compared at."""

    title: str
    filters: tuple[str, ...]
    scores: tuple[str, ...] = ()
    targets: Mapping[str, Target | None] = field(default_factory=dict)
    """The peers, each with the least ratio of throughput that Fairlead has to reach."""
    whole_nodes: bool = False
    """Whether the scheduler sends whole nodes to the peers; to Fairlead it never does."""


PASSING: Final = ("variables.wants != ''", "allocatable['cpu'] >= 2.0 && pod.spec.priority >= 0", cluster.FILTERS[2])
REFUSING: Final = (cluster.FILTERS[0], *PASSING[1:])
SCORES: Final = (
    "100.0 * (1.0 - requested['cpu'] / allocatable['cpu'])",
    "node.metadata.labels['zone'] == 'z1' ? 50.0 : 0.0",
)
CASES: Final[Mapping[str, Case]] = {
    "a": Case(
        "three filters reject no node",
        PASSING,
        targets={"limit": Target(0.87), f"limit{OVER_TLS}": None, "bare": Target(1.1)},
    ),
    "b": Case(
        "one of three filters rejects a quarter of the nodes, and two rules score",
        REFUSING,
        SCORES,
        {"limit": Target(0.78), "bare": Target(1.0)},
    ),
    "c": Case("as a, but the peer gets whole nodes", PASSING, targets={"bare": None}, whole_nodes=True),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """An extender, and settings of the scheduler that differ from the rendered ones, from a name as `--also` has it.

    Such as `limit, connection kept, GOGC=100, nodeSample=42%`; the settings come last.
    """

    name: str

    @property
    def extender(self) -> str:
        """Name of the extender."""
        return _SETTING.split(self.name, maxsplit=1)[0]

    @property
    def without_extender(self) -> str:
        """Name of the variant with the same settings and no extender."""
        return NONE + self.name.removeprefix(self.extender)

    @property
    def gogc(self) -> int:
        """Setting of the scheduler's garbage collection."""
        return int(self._settings.get("GOGC", SchedulerDefaults().gogc))

    @property
    def node_sample(self) -> str:
        """Share of the nodes that the scheduler asks about, or Auto."""
        return self._settings.get("nodeSample", SchedulerDefaults().node_sample)

    @property
    def _settings(self) -> Mapping[str, str]:
        return dict(setting.split("=") for setting in _SETTING.split(self.name)[1:])


_SETTING: Final = re.compile(r", (?=(?:GOGC|nodeSample)=)")


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster in which the scheduler `NAME` may run; its pods have a namespace of the same name."""

    api: Api
    kubeconfig: Path
    nodes: int

    def delete_pods(self) -> None:
        """Delete all pods, and return when they are gone."""
        self.api.delete(PODS, gracePeriodSeconds="0")
        wait_for("the pods to be gone", lambda: not self.api.get(PODS, limit="1")["items"], timeout_s=GONE_S)


@contextmanager
def stage_running(many: int, template: Template | None = None, name: str = CLUSTER) -> Iterator[Stage]:
    """Run a control plane of that name with so many kwok nodes, and take it down at the end, also after SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    provider = Local(name, node=False)
    try:
        provider.up()
        kubeconfig = provider.kubeconfig()
        with closing(Api(kubeconfig)) as api:
            nodes.ensure(
                kubeconfig.parent, kubeconfig, node_template.make(many, template or template_of_nodes(), seed=1)
            )
            _make_namespace(api)
            yield Stage(api, kubeconfig, many)
    finally:
        provider.down()


@contextmanager
def extender_running(name: str, case: Case, stage: Stage, folder: Path) -> Iterator[Extender | None]:
    """Run the extender of that name: None for `NONE`. The folder is for its files."""
    if name == NONE:
        yield None
        return
    with _running(name, case, stage, folder) as extender:
        yield extender


def entries(name: str, case: Case, extender: Extender | None) -> Sequence[dict[str, Any]]:
    """Return the extenders of the scheduler's configuration."""
    wiring = Wiring(scores=bool(case.scores), whole_nodes=case.whole_nodes and name != OWN)
    return [] if extender is None else wiring.entries(extender)


def pod(number: int) -> Object:
    """Return a pod for the scheduler."""
    spec = {
        "schedulerName": NAME,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
    }
    return {"metadata": {"name": f"web-{number}", "labels": {"app": "web", "gpu": "a"}}, "spec": spec}


def order(names: Sequence[str], number: int) -> list[str]:
    """Return the names in the order of that round: another one each time, so that none always comes first."""
    shuffled = [*names]
    random.Random(number).shuffle(shuffled)  # noqa: S311  an order
    return shuffled


def _running(name: str, case: Case, stage: Stage, folder: Path) -> AbstractContextManager[Extender]:
    if name == OWN:
        return programs.fairlead_running(folder, [policy_of(case)], stage.kubeconfig)
    if name == RECORDED:
        replies = _record(case, stage, folder / "recording")
        return programs.peer_running_over_tls("limit", folder, f"-replies={replies}")
    if name.endswith(OVER_TLS):
        return programs.peer_running_over_tls(name.removesuffix(OVER_TLS), folder)
    return programs.peer_running(name.removesuffix(KEPT), *(["-keep"] if name.endswith(KEPT) else []))


def _record(case: Case, stage: Stage, folder: Path) -> Path:
    """Ask Fairlead about all nodes, once, and return the folder of its replies, a file for each verb."""
    names = [node["metadata"]["name"] for node in stage.api.items("/api/v1/nodes")]
    asked = pod(0)
    asked |= {"metadata": {**asked["metadata"], "namespace": NAME}, "spec": {**asked["spec"], "priority": 0}}
    folder.mkdir()
    with programs.fairlead_running(folder, [policy_of(case)], stage.kubeconfig) as own:
        programs.record(own, asked, names, verbs_of(case), folder)
    return folder


def verbs_of(case: Case) -> Sequence[str]:
    """Return the verbs that the scheduler calls."""
    return ("filter", "prioritize") if case.scores else ("filter",)


def policy_of(case: Case) -> dict[str, Any]:
    """Return the policy of a case."""
    plain = cluster.plain(case.filters, case.scores)
    return {**plain, "spec": {**plain["spec"], "schedulerName": NAME}}


def template_of_nodes() -> Template:
    """Return the template of the nodes: a quarter of them has another GPU."""
    gpus = [Alternative({"metadata": {"labels": {"gpu": kind}}}, weight) for kind, weight in (("a", 3), ("b", 1))]
    zones = [Alternative({"metadata": {"labels": {"zone": f"z{at}"}}}) for at in range(3)]
    labels = {f"example.org/label-{number}": str(number) for number in range(20)}
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    node = {"metadata": {"labels": labels}, "status": {"capacity": capacity}}
    return Template([Pool("bench", node, (gpus, zones))], "ip-10-0-eu-central-1-compute-internal")


def _make_namespace(api: Api) -> None:
    if not api.exists(f"/api/v1/namespaces/{NAME}"):
        api.create("/api/v1/namespaces", {"metadata": {"name": NAME}})
    account = f"/api/v1/namespaces/{NAME}/serviceaccounts/default"
    wait_for("the namespace's service account", lambda: api.exists(account))

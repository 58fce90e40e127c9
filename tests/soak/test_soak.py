"""An hour in which everything happens again and again, and nothing grows: `make soak`, for `LASTS` seconds.

Two schedulers place twenty pods a second on 1000 nodes, by measured values and with shares of devices. Meanwhile
policies are edited, the leader is killed, the authority is rotated and the API server is restarted, as
`support.soak.schedule` says.
"""

import json
import logging
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import pytest

from bench.report import machine
from demo.measured import LoadBeside
from support import soak
from support.chart.release import Release, released
from support.grants.card_watch import CardWatch
from support.soak import Disturbance
from support.soak.events import Happening, PolicySpec
from support.soak.histograms import between, quantile_ms
from support.soak.observation import Living, Observation, keys, living
from support.stream import Follow, Row, Stream, StreamedPod, tally
from testbed import layout as layouts
from testbed import tables
from testbed.api import Api, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import Cluster
from testbed.layout import Layout
from testbed.node_config import NODE
from testbed.sandbox import Sandbox

LOG = logging.getLogger(__name__)
LASTS_S = float(os.environ.get("FAIRLEAD_SOAK_S", "3600"))
NODES = int(os.environ.get("FAIRLEAD_SOAK_NODES", "1000"))
_NAMESPACE = "soak"
_CARDS, _SIZE = 8, 3
MEM, COUNT = "example.org/gpu-mem", "example.org/gpu-count"
_LABEL = "node.metadata.labels[?'pool'].orValue('')"
_POOLS = {
    "cards": f"{_LABEL} == pod.metadata.labels['pool']",
    "others": f"!({_LABEL} in ['', pod.metadata.labels['pool']])",
}
_OVER_WITHIN_S = 300.0
_PROGRESS = 20
"""Lines of progress in a window."""


def _spec(name: str, number: int) -> PolicySpec:
    """Spec of a policy; each edit brings an expression that nothing has seen before."""
    pool = {"name": "pool", "expression": f"{_POOLS[name]} && node.metadata.name != 'edit-{number}'"}
    load = {"name": "load", "prometheus": {"query": "load", "nodeLabel": "node"}}
    hot = {"name": "not-hot", "telemetry": {"rules": [{"value": "load", "operator": "GreaterThan", "target": 0.95}]}}
    idle = {"name": "idle", "expression": "100.0 * (1.0 - data.load)"}
    fill = {"name": "fill-cards", "deviceShare": {"name": "gpu", "objective": "Pack"}}
    share = {"name": "gpu", "shares": [{"resource": MEM}], "layout": {"count": COUNT}}
    return {
        **({} if name == "cards" else {"schedulerName": "other"}),
        "data": [load],
        "filters": [pool, hot],
        "scores": [idle, fill],
        "binding": {"deviceShare": [share]},
    }


@pytest.fixture(scope="module")
def layout(cluster: Cluster) -> Layout:
    found = layouts.load(cluster.provider.cluster)
    if found is None:
        pytest.skip("the API server is restarted, and etcd read, where they are processes of this machine")
    return found


@pytest.fixture(scope="module")
def load(layout: Layout) -> LoadBeside:
    return LoadBeside(layout)


@pytest.fixture(scope="module")
def release(cluster: Cluster, load: LoadBeside, operator_image_tag: str, scheduler_image_tag: str) -> Iterator[Release]:
    cards = {MEM: str(_CARDS * _SIZE), COUNT: str(_CARDS)}
    with released(cluster, operator_image_tag, NODES, cards) as made:
        load.up(_load(made.nodes, 0))
        made.install(drainSeconds=5, prometheus=[{"name": "default", "url": load.url}])
        for name in _POOLS:
            made.put(name, **_spec(name, 0))
        for name in _POOLS:
            made.ready(name, within="180s")
            made.ready(name, within="180s", kind="DataReady")
        yield made


def _load(nodes: Sequence[str], number: int) -> dict[str, float]:
    """Load of each node, another each time; the real one has it, too, or after a while the data would not be ready."""
    drawn = random.Random(number)  # noqa: S311  no secret
    return {node: round(drawn.uniform(0.1, 0.9), 3) for node in (*nodes, NODE)}


@pytest.fixture(scope="module")
def namespace_path(release: Release) -> Iterator[str]:
    api, path = release.api, f"/api/v1/namespaces/{_NAMESPACE}"
    api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    wait_for("its service account", lambda: api.exists(f"{path}/serviceaccounts/default"))
    yield path

    def is_gone() -> bool:
        api.delete(path)
        return not api.exists(path)

    wait_for("the namespace to go", is_gone, timeout_s=_OVER_WITHIN_S)


@dataclass(slots=True)
class Soak:
    """One that runs."""

    plan: soak.Schedule
    release: Release
    load: LoadBeside
    stream: Stream
    observation: Observation
    happening: Happening
    ended_s: float = 0.0
    rows: list[Row] = field(default_factory=list)
    log: list[tuple[float, str]] = field(default_factory=list)
    _pods: list[StreamedPod] = field(default_factory=list)
    _told_s: float = 0.0
    _counted_s: float = 0.0

    def run(self) -> None:
        """Have everything happen. A step that takes longer than a sample delays those after it."""
        begun = self.observation.begun
        for at_s, step in [*self.plan.steps, (self.plan.lasts_s, None)]:
            while (left := begun + at_s - time.monotonic()) > 0:
                due = time.monotonic() + min(left, self.plan.sample_s)
                self._look()
                time.sleep(max(0.0, due - time.monotonic()))  # a pace, which no condition ends
            if step is not None:
                self._make(step)
            begun += max(0.0, time.monotonic() - begun - at_s - self.plan.sample_s)
        self._look()
        self.ended_s = self.observation.at_s()
        self._pods += self.stream.end_settled()
        self._count()

    def _make(self, step: Disturbance) -> None:
        try:
            self._tell(self.happening.make(step))
        except ClusterError as error:  # the judgement says that it has not happened
            self._tell(f"{step}: {error}")

    def _look(self) -> None:
        at_s = self.observation.at_s()
        self._pods += self.stream.settled()
        if at_s - self._counted_s >= self.plan.window_s:
            self._count()
        try:
            self.load.set(_load(self.release.nodes, int(at_s)))
            sample = self.observation.look()
            self.happening.look()
        except ClusterError as error:
            self._tell(f"no sample: {str(error)[:100]}")
            return
        if at_s - self._told_s >= self.plan.window_s / _PROGRESS:
            self._told_s = at_s
            self._tell(self._progress(sample))

    def _progress(self, sample: Sequence[soak.ProcessSample]) -> str:
        at_s = self.observation.at_s()
        p99 = quantile_ms(between(self.observation.histograms, at_s - self.plan.window_s / 2, at_s), 0.99)
        each = (f"{one.role} {one.rss >> 20} MiB {one.files}+{one.sockets}" for one in sample)
        return f"{len(self._pods)} pods in this window, filter p99 {p99:.1f} ms; {', '.join(each)}"

    def _tell(self, what: str) -> None:
        at_s = self.observation.at_s()
        self.log.append((at_s, what))
        LOG.info("%3d:%02d of %d:%02d  %s", *divmod(int(at_s), 60), *divmod(int(self.plan.lasts_s), 60), what)

    def _count(self) -> None:
        at_s = self.observation.at_s()
        what = f"{self._counted_s / 60:.1f} to {at_s / 60:.1f} min"
        self.rows.append(tally(what, self._pods, self._counted_s, at_s))
        self._pods, self._counted_s = [], at_s


def test_nothing_grows(
    release: Release, load: LoadBeside, layout: Layout, namespace_path: str, pytestconfig: pytest.Config
) -> None:
    plan = soak.schedule(LASTS_S)
    before, living_before = keys(layout), living(release.api)
    kubeconfig, pods = release.cluster.kubeconfig, f"{namespace_path}/pods"
    with (
        closing(Api(kubeconfig)) as own,
        closing(Api(kubeconfig)) as watching,
        closing(Follow(release.cluster.audit_log)) as log,
        CardWatch(watching, pods, MEM, _SIZE) as cards,
    ):
        stream = Stream(
            api=own,
            namespace=_NAMESPACE,
            log=log,
            nodes={node: "ab"[number % 2] for number, node in enumerate(release.nodes)},
            schedulers={"fairlead": {"a": "a", "b": "b"}, "other": {"a": "b", "b": "a"}},
            asks={MEM: "1"},
        )
        policies = [(name, lambda number, name=name: _spec(name, number)) for name in _POOLS]
        running = Soak(
            plan,
            release,
            load,
            stream,
            Observation(release, Sandbox(layout.folder).cgroup),
            Happening(release, policies),
        )
        stream.begin()
        try:
            running.run()
        finally:
            stream.end()
            _keep_samples(pytestconfig, running)
        _remove_all(release.api, pods)
        left, late = _rest(release, running.happening)
    observed = _observed(running, before, keys(layout), left, left.more_than(living_before), late, cards)
    findings = soak.judge(observed)
    tables.leave(pytestconfig, f"a soak of {LASTS_S:.0f} s", soak.as_table(findings, running.rows))
    _write(pytestconfig, running, findings)
    assert [one.what for one in findings if not one.is_kept] == []


def _remove_all(api: Api, pods: str) -> None:
    """Delete what is left of the stream; a busy API server may take longer than an answer is waited for."""

    def are_gone() -> bool:
        if left := api.items(pods, limit="1"):
            api.delete(pods)
        return not left

    wait_for("the last pod to go", are_gone, timeout_s=_OVER_WITHIN_S)


def _rest(release: Release, happening: Happening) -> tuple[Living, list[str]]:
    """Wait until everything that was begun is over; return what is left, and what is not over."""

    def is_over() -> bool:
        happening.look()
        return not happening.is_rotating

    late = list[str]()
    waits: Sequence[Callable[[], object]] = (
        lambda: release.runs(2),
        lambda: wait_for("the rotation to be over", is_over, timeout_s=_OVER_WITHIN_S),
        *(partial(release.ready, name, "180s", kind) for name in _POOLS for kind in ("Ready", "DataReady")),
    )
    for wait in waits:
        try:
            wait()
        except ClusterError as error:
            late.append(str(error)[:1000])
    return living(release.api), late


def _observed(
    running: Soak,
    before: Mapping[str, int],
    after: Mapping[str, int],
    left: Living,
    more: Mapping[str, int],
    late: Sequence[str],
    cards: CardWatch,
) -> soak.Observed:
    plan, samples, done = running.plan, running.observation.histograms, running.happening.done
    p99 = [
        quantile_ms(between(samples, begin, begin + plan.window_s), 0.99)
        for begin in (0.0, running.ended_s - plan.window_s)
    ]
    rows = running.rows
    return soak.Observed(
        settled_s=plan.window_s,
        leads_s=plan.window_s / 2,
        full_s=soak.KEPT_PODS * running.ended_s / max(1, sum(row.created for row in rows)),
        roles=(soak.FOLLOWER, soak.LEADER, "scheduler fairlead", "scheduler other"),
        lives=soak.lives(running.observation.processes),
        p99_first_ms=p99[0],
        p99_last_ms=p99[1],
        keys_before=before,
        keys_after=after,
        living=more,
        grants=left.grants,
        grants_max=_CARDS * _SIZE,
        pods={
            "lost": sum(len(row.lost) for row in rows),
            "misplaced": sum(len(row.misplaced) for row in rows),
            "placed twice": sum(len(row.twice) for row in rows),
            "on a node, and the audit log does not say how": sum(len(row.unsaid) for row in rows),
            "without a grant": cards.without_grant,
            "on a card that held more than it has": cards.overbooked,
        },
        late=late,
        steps={str(step): (plan.count(step), done[step]) for step in Disturbance},
    )


def _folder(config: pytest.Config) -> Path:
    folder = config.rootpath / "build" / "soak"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _keep_samples(config: pytest.Config, running: Soak) -> None:
    with (_folder(config) / "samples.jsonl").open("w") as file:
        file.writelines(json.dumps(asdict(one)) + "\n" for one in running.observation.processes)


def _write(config: pytest.Config, running: Soak, findings: Sequence[soak.Finding]) -> None:
    about = {"lasts_s": LASTS_S, "nodes": NODES, "machine": machine()}
    report = soak.as_json(about, findings, running.rows, running.log)
    (_folder(config) / "report.json").write_text(json.dumps(report, indent=2))

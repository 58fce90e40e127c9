"""Twenty pods a second through everything that happens to an operator, and what became of each: printed as a table.

One install for all, and each test goes on from where the one before has left it.
"""

import base64
import logging
import re
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from fairlead.pki.identities import AUTHORITY_SECRET as AUTHORITY
from fairlead.pki.rotation import ROTATE
from fairlead.render.object_names import CONFIG_HASH
from fairlead.render.plan import TLS_FOLDER
from support.chart.chart import CHART, NAMESPACE
from support.chart.earlier import Earlier, begin_of_upgrade, build
from support.chart.release import (
    DEPLOYMENT,
    HOOKS,
    OPERATOR,
    PODS,
    SCHEDULER,
    Release,
    document,
    is_ready,
    processes,
    refused,
    released,
)
from support.stream import VALUES, Follow, Stream, table
from testbed import operator_image, tables
from testbed.api import Api, wait_for
from testbed.fixtures import Cluster

LOG = logging.getLogger(__name__)
_NAMESPACE = "stream"
_NODES = 20
_OPERATOR = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/fairlead"
_SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
_LEADS = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/kube-scheduler-fairlead"
_BUDGET = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/kube-scheduler-fairlead"
_LABEL = "node.metadata.labels[?'pool'].orValue('')"
_FILTERS = [{"name": "pool", "expression": f"{_LABEL} == pod.metadata.labels['pool']", "reason": "another pool"}]
_OTHERS = [{"name": "pool", "expression": f"!({_LABEL} in ['', pod.metadata.labels['pool']])", "reason": "our pool"}]
_BAD = [{"name": "pool", "expression": "node.metadata.nam == 'a'"}]
_SCORES = [{"name": "room", "expression": "size(pods) < 50 ? 100.0 : 0.0"}]
_NOTE = "fairlead.dev/pool"
_ALL: Mapping[str, object] = {
    "filters": _FILTERS,
    "scores": _SCORES,
    "binding": {"annotations": [{"key": _NOTE, "expression": _LABEL}]},
}
_AGAIN = re.compile(rf'"Error scheduling pod; retrying".* pod="{_NAMESPACE}/([^"]+)"')


@pytest.fixture(scope="module")
def before(cluster: Cluster, built_image: operator_image.Image, tmp_path_factory: pytest.TempPathFactory) -> Earlier:
    """Chart and image of the last tag or, before the first, of the last commit; of now where there is no history."""
    commit, name = begin_of_upgrade()
    if not commit:
        return Earlier("the same commit, because no history is here", CHART, built_image)
    made = build(tmp_path_factory.mktemp("before"), commit, name)
    if made.image != built_image:
        cluster.provider.load(made.image.archive)
    return made


@pytest.fixture(scope="module")
def release(cluster: Cluster, operator_image_tag: str, scheduler_image_tag: str, before: Earlier) -> Iterator[Release]:
    """Installed as it was earlier."""
    with released(cluster, before.image.tag, _NODES) as made:
        made.install(chart=before.chart, **VALUES)
        made.image = operator_image_tag
        yield made


@pytest.fixture(scope="module")
def stream(release: Release, pytestconfig: pytest.Config) -> Iterator[Stream]:
    """Begun once there is a scheduler for it."""
    release.put("pools", filters=_FILTERS)
    release.ready("pools", within="180s")
    api, path = Api(release.cluster.kubeconfig), f"/api/v1/namespaces/{_NAMESPACE}"
    api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    wait_for("its service account", lambda: api.exists(f"{path}/serviceaccounts/default"))
    with closing(api), closing(Follow(release.cluster.audit_log)) as log:
        made = Stream(
            api=api,
            namespace=_NAMESPACE,
            log=log,
            nodes={node: "ab"[number % 2] for number, node in enumerate(release.nodes)},
            schedulers={"fairlead": {"a": "a", "b": "b"}},
        )
        made.begin()
        yield made
        made.end()
        tables.leave(pytestconfig, "a steady stream of pods", table([*made.rows, made.total()]))
        api.delete(path)


def _edit(release: Release, filters: object = _FILTERS) -> None:
    release.put("pools", **{**_ALL, "filters": filters})


def _retries(release: Release) -> Mapping[str, int]:
    """How often schedulers have tried each pod in vain: of the third time on, there is no event."""
    found = Counter[str]()
    for pod in release.pods(SCHEDULER):
        found.update(_AGAIN.findall(release.api.text(f"{PODS}/{pod['metadata']['name']}/log")))
    return found


def test_upgrade(release: Release, stream: Stream, before: Earlier) -> None:
    old = release.uids(OPERATOR)
    with stream.through(f"upgrade from {before.name}"):
        release.install(**VALUES, podAnnotations={"upgraded": "yes"})
        release.runs(2, but=old)
        release.ready("pools", within="180s")
        stream.flow(2)
    with stream.through("removal of bindings that versions before 0.1.0 had"):
        for kind, where in (("clusterrolebindings", ()), ("rolebindings", ("--namespace=kube-system",))):
            release.kubectl("delete", kind, "--selector=fairlead.dev/scheduler", *where)
        stream.flow(2)


def test_edit_of_a_rule(release: Release, stream: Stream) -> None:
    rolled = release.rolled()
    with stream.through("edit of a rule"):
        release.put("pools", filters=[{**_FILTERS[0], "reason": "not its pool"}])
        release.ready("pools")
        stream.flow(2)
    assert release.rolled() == rolled


def _timeline(release: Release, config: str, old: Collection[str]) -> Mapping[str, float]:
    """When each step of a roll was first seen."""
    begun, seen = time.monotonic(), dict[str, float]()

    def look() -> bool:
        written = release.api.get(DEPLOYMENT)["metadata"]["annotations"][CONFIG_HASH] != config
        pods = release.api.items(PODS, labelSelector=SCHEDULER)
        new = [one for one in pods if one["metadata"]["uid"] not in old]
        checks = [one for pod in new for one in pod["status"].get("initContainerStatuses", [])]
        holder = release.api.get(_LEADS)["spec"].get("holderIdentity") or ""
        steps = {
            "its Deployment is written": written,
            "a new pod is there": bool(new),
            "the configuration is checked": any("terminated" in one["state"] for one in checks),
            "a new pod is ready": any(map(is_ready, new)),
            "a new pod leads": holder.partition("_")[0] in {one["metadata"]["name"] for one in new},
            "the old ones have gone": bool(new) and len(pods) == len(new),
            "verified": written and release.condition("pools", "Ready")[0] == "True",
        }
        for step, is_done in steps.items():
            if is_done:
                seen.setdefault(step, time.monotonic() - begun)
        return len(seen) == len(steps)

    wait_for("the roll to be over", look, timeout_s=180)
    return seen


def test_edit_of_the_wiring(release: Release, stream: Stream) -> None:
    config = release.api.get(DEPLOYMENT)["metadata"]["annotations"][CONFIG_HASH]
    old = release.uids(SCHEDULER)
    with stream.through("first use of scores and annotations: rolled"):
        _edit(release)
        seen = _timeline(release, config, old)
        LOG.info("after the edit: %s", ", ".join(f"{step} {at:.1f} s" for step, at in seen.items()))
        stream.flow(2)

    def noted() -> bool:
        return any(_NOTE in one["metadata"].get("annotations", {}) for one in release.api.items(stream.path))

    wait_for("the new verb to be used", noted)


def test_configuration_that_the_scheduler_refuses(release: Release, stream: Stream) -> None:
    old = release.uids(SCHEDULER)
    with stream.through("settings that the scheduler refuses, and back"):
        profile = {"plugins": {"filter": {"enabled": [{"name": "NoSuchPlugin"}]}}}
        release.install({"name": "fairlead", "profile": profile}, **VALUES)
        release.until("pools", "Programmed", "ConfigurationRejected", timeout_s=120)
        wait_for(
            "the old one",
            lambda: "rolled back to the last good one" in release.condition("pools", "Programmed")[2],
            timeout_s=120,
        )
        assert old <= release.uids(SCHEDULER)
        wait_for("the refused one to go", lambda: release.uids(SCHEDULER) == old)
        release.install(**VALUES)
        release.ready("pools", within="120s")
    assert release.uids(SCHEDULER) == old


def test_broken_policy_and_all_replicas_anew(release: Release, stream: Stream) -> None:
    with stream.through("a policy broken by an edit, all replicas restarted"):
        (hook,) = [one["metadata"]["name"] for one in release.api.items(HOOKS)]
        release.api.delete(f"{HOOKS}/{hook}")
        bad = document("pools", **{**_ALL, "filters": _BAD})
        wait_for("nobody to ask", lambda: not refused(lambda: release.kubectl("apply", "-f", "-", stdin=bad)))
        release.until("pools", "Compiled", "LastGoodServes")
        old = release.uids(OPERATOR)
        release.kubectl("rollout", "restart", "deployment/fairlead", "-n", NAMESPACE)
        release.runs(2, but=old)
        stream.flow(2)
        assert release.condition("pools", "Compiled")[1] == "LastGoodServes"
    _edit(release)
    release.ready("pools")


def test_leader_killed(release: Release, stream: Stream) -> None:
    uid = release.api.get(_BUDGET)["metadata"]["uid"]
    with stream.through("the leader killed with -9", provoked=lambda: _retries(release)):
        for one in processes(release.leader()):
            one.kill()
        release.api.delete(_BUDGET)  # its pod begins anew and may lead again: whoever leads makes this again
        wait_for("somebody to reconcile", lambda: release.api.get(_BUDGET)["metadata"]["uid"] != uid)
        release.runs(2)
        release.ready("pools")
        stream.flow(2)


@contextmanager
def _deaf(pod: str) -> Iterator[None]:
    """All packets to a pod are dropped meanwhile."""

    def nft(command: str) -> None:
        enter = ["nsenter", f"--target={processes(pod)[0].pid}", "--net"]
        subprocess.run([*enter, "nft", command], check=True, capture_output=True)

    nft("add table ip deaf; add chain ip deaf heard { type filter hook input priority 0; policy drop; }")
    try:
        yield
    finally:
        nft("delete table ip deaf")


def test_packets_to_one_replica_dropped(release: Release, stream: Stream) -> None:
    leader = release.leader()
    (other,) = [name for one in release.pods(OPERATOR) if (name := one["metadata"]["name"]) != leader]
    with stream.through("packets to one of two replicas dropped", provoked=lambda: _retries(release)):
        with _deaf(other):
            wait_for("it to be found out", lambda: not is_ready(release.api.get(f"{PODS}/{other}")))
            stream.flow(5)
        release.runs(2)
        release.ready("pools")
        stream.flow(2)


def test_certificate_issued_anew(release: Release, stream: Stream) -> None:
    path = f"{_SECRETS}/kube-scheduler-fairlead-tls"
    with stream.through("the scheduler's certificate issued anew"):
        old = release.api.get(path)["data"]["tls.crt"]
        release.api.delete(path)
        wait_for("another", lambda: release.api.get(path)["data"]["tls.crt"] != old)
        new = base64.b64decode(release.api.get(path)["data"]["tls.crt"])
        pods = release.pods(SCHEDULER)
        for pod in pods:  # the kubelet looks at pods that change at once, at others within a minute or two
            release.api.patch(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"annotations": {"look": "now"}}})
        files = [
            Path(f"/proc/{one.pid}/root{TLS_FOLDER}/tls.crt")
            for pod in pods
            for one in processes(pod["status"]["podIP"], variable="POD_IP")
        ]
        wait_for("the schedulers to have it", lambda: all(file.read_bytes() == new for file in files), timeout_s=150)
        stream.flow(2)


def test_authority_replaced(release: Release, stream: Stream) -> None:
    path, begun, steps = f"{_SECRETS}/{AUTHORITY}", time.monotonic(), list[str]()
    with stream.through("the authority replaced: two rolls"):
        old = release.api.get(path)["data"]["tls.crt"]
        release.api.patch(path, {"metadata": {"annotations": {ROTATE: "now"}}})
        for key in ("next.crt", "previous.crt", "retired.crt"):
            wait_for(key, lambda key=key: key in release.api.get(path)["data"], timeout_s=180)  # type: ignore[misc]
            steps.append(f"{key} {time.monotonic() - begun:.1f} s")
        wait_for("it to be over", lambda: {*release.api.get(path)["data"]} == {"tls.crt", "tls.key"}, timeout_s=180)
        assert release.api.get(path)["data"]["tls.crt"] != old
        release.ready("pools", within="180s")
        stream.flow(2)
    LOG.info("the authority: %s, over %.1f s", ", ".join(steps), time.monotonic() - begun)


def test_operator_scaled(release: Release, stream: Stream) -> None:
    with stream.through("the operator scaled to 1, 2, 3"):
        for count in (1, 2, 3):
            release.api.patch(_OPERATOR, {"spec": {"replicas": count}})
            release.runs(count)
            stream.flow(1)
        release.ready("pools")


def test_two_schedulers(release: Release, stream: Stream) -> None:
    with stream.through("a second scheduler comes, with another policy"):
        release.put("others", schedulerName="other", filters=_OTHERS)
        release.ready("others", within="180s")
    stream.schedulers["other"] = {"a": "b", "b": "a"}
    with stream.through("two schedulers with different policies"):
        stream.flow(10)
    assert {pod.scheduler for pod in stream.pods.values() if pod.bound is not None} == {"fairlead", "other"}


def test_uninstall(release: Release, stream: Stream) -> None:
    with stream.through("uninstall", leaves=True):
        release.uninstall()

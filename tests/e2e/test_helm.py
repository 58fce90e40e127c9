"""What people do with it: `helm install`, `kubectl apply`, and all that goes wrong afterwards. One install for all."""

import asyncio
import json
import logging
import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from extender import Stage
from fairlead.cli.inputs.cluster_access import ClusterAccess
from fairlead.cli.inputs.replica_decisions import ROLE
from fairlead.cli.main import main, parser
from fairlead.cli.ui.decision_table import ReadDecisions, decision_table
from fairlead.cli.ui.page_reader import ask_replicas
from support.chart.chart import NAMESPACE
from support.chart.release import (
    DEPLOYMENT,
    HOOKS,
    OPERATOR,
    PODS,
    SCHEDULER,
    Release,
    document,
    pods_of_one_test,
    processes,
    refused,
    released,
)
from support.kube.service_account import kubeconfig_of
from testbed.api import Object, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import Cluster

LOG = logging.getLogger(__name__)
_RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings/kube-scheduler-fairlead"
_BUDGET = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/kube-scheduler-fairlead"
_CAPACITY = f"/apis/storage.k8s.io/v1/namespaces/{NAMESPACE}/csistoragecapacities/fairlead-wake-up"
_POOL = "node.metadata.labels[?'pool'].orValue('') == pod.metadata.labels['pool']"
_BAD = "node.metadata.nam == 'a'"
_SCORES = [{"name": "points", "weight": 20, "expression": "double(node.metadata.labels['points'])"}]
_LEFT = {
    ("CustomResourceDefinition", "<none>", "schedulerextenderpolicies.fairlead.dev"),
    ("SchedulerExtenderPolicy", "<none>", "stays"),
    # what every namespace has, which helm has made and never deletes
    ("Namespace", "<none>", NAMESPACE),
    ("ServiceAccount", NAMESPACE, "default"),
    ("ConfigMap", NAMESPACE, "kube-root-ca.crt"),
    ("PriorityClass", "<none>", "urgent"),  # of these tests
}


def _filters(expression: str = _POOL) -> list[Object]:
    return [{"name": "pool", "expression": expression, "reason": "another pool"}]


@pytest.fixture(scope="module")
def release(cluster: Cluster, operator_image_tag: str, scheduler_image_tag: str) -> Iterator[Release]:
    """Installed, without any policy."""
    with released(cluster, operator_image_tag, 4) as made:
        begun = time.monotonic()
        made.install()
        LOG.info("installed in %.1f s", time.monotonic() - begun)
        yield made


@pytest.fixture
def pods(release: Release, namespace: str) -> Iterator[Stage]:
    """Pods of this test alone, whose policies go with them."""
    with pods_of_one_test(release, namespace) as stage:
        yield stage


def make(pods: Stage, name: str, pool: str = "a") -> None:
    """A pod that waits for the managed scheduler."""
    pods.make_pods([name], labels={"pool": pool}, scheduler="fairlead")


def test_pods_are_placed_by_a_policy_once_it_is_applied(release: Release, pods: Stage) -> None:
    begun = time.monotonic()
    release.put("pools", filters=_filters(), scores=_SCORES)
    release.ready("pools", within="180s")
    LOG.info("ready %.1f s after it was applied", time.monotonic() - begun)
    for pool, best in {"a": release.nodes[2], "b": release.nodes[3]}.items():
        make(pods, pool, pool)
        assert pods.placed(pool) == best
    make(pods, "nowhere", "c")
    assert pods.refusal("nowhere").startswith("0/5 nodes are available: 5 another pool")
    ((reason, note),) = pods.events("nowhere")
    assert reason == "FailedScheduling"
    assert note.startswith("0/5 nodes are available: 5 another pool")
    said = release.kubectl("get", "sep", "pools")
    assert "True" in said, said


def test_status_tells_what_each_replica_tells(
    release: Release, pods: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    release.put("pools", filters=_filters(), scores=_SCORES)
    release.ready("pools", within="180s")
    make(pods, "a")
    pods.placed("a")
    command = ["status", "--kubeconfig", str(release.cluster.kubeconfig), "-o", "json"]

    def well() -> bool:
        capsys.readouterr()
        return main(command) == 0

    wait_for("status to say that all is well", well)
    said = json.loads(capsys.readouterr().out)
    assert (said["ready"], said["wrong"], said["notRead"]) == (True, [], [])
    (scheduler,) = said["schedulers"]
    assert (scheduler["name"], scheduler["management"], scheduler["pods"]) == ("fairlead", "Managed", "2/2")
    assert scheduler["leader"].startswith("kube-scheduler-fairlead-")
    assert sorted(one["leads"] for one in said["replicas"]) == [False, True]
    assert len({one["policySet"] for one in said["replicas"]} - {""}) == 1
    assert all(0 <= one["staleS"] < 120 for one in said["replicas"])
    assert [(one["name"], one["serving"] == one["generation"]) for one in said["policies"]] == [("pools", True)]
    assert {one["name"]: one["rejectedNodes"] is not None for one in said["rules"]} == {"pool": True, "points": True}


def test_an_edit_of_a_rule_counts_for_the_next_pod_and_rolls_nothing_and_wakes_who_was_refused(
    release: Release, pods: Stage
) -> None:
    release.put("pools", filters=_filters(), scores=_SCORES)
    release.ready("pools")
    make(pods, "before")
    assert pods.placed("before") == release.nodes[2]
    make(pods, "waits", "nowhere")
    pods.refusal("waits")
    before = release.rolled()

    begun = time.time()
    release.put("pools", filters=_filters(f"{_POOL} || node.metadata.name == '{release.nodes[1]}'"), scores=_SCORES)
    assert pods.placed("waits") == release.nodes[1]
    took = time.time() - begun
    LOG.info("woken %.1f s after the rule was repaired", took)
    assert took < 10, f"woken {took:.1f} s after the rule was repaired"
    woken = release.api.get(_CAPACITY)["metadata"]["annotations"]["fairlead.dev/woken-at"]
    assert datetime.fromisoformat(woken).timestamp() > begun, "it was not the wake-up that had it tried again"
    release.ready("pools")
    release.put("pools", filters=_filters(f"node.metadata.name == '{release.nodes[0]}'"), scores=_SCORES)
    release.ready("pools")
    make(pods, "after", "b")
    assert pods.placed("after") == release.nodes[0]
    assert release.rolled() == before


def _lint(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    file = folder / "policy.yaml"
    file.write_text(text)
    assert main(["lint", "-o", "json", str(file)]) == 1
    (fault,) = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["severity"] == "error"]
    return str(fault["message"])


def test_a_bad_policy_is_denied_and_without_the_check_its_status_says_the_same(
    release: Release, pods: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release.put("pools", filters=_filters(), scores=_SCORES)
    release.ready("pools")
    bad = document("pools", filters=_filters(_BAD), scores=_SCORES)
    fault = _lint(tmp_path, bad, capsys)
    for more in ((), ("--dry-run=server",), ("--server-side", "--force-conflicts")):
        said = refused(lambda more=more: release.kubectl("apply", "-f", "-", *more, stdin=bad))  # type: ignore[misc]
        assert fault in said
        assert "spec.filters[0].expression" in said

    (hook,) = [one["metadata"]["name"] for one in release.api.items(HOOKS)]
    release.api.delete(f"{HOOKS}/{hook}")
    wait_for("nobody to ask", lambda: not refused(lambda: release.kubectl("apply", "-f", "-", stdin=bad)))
    begun = time.monotonic()
    said = release.until("pools", "Compiled", "LastGoodServes")
    LOG.info("said %.1f s after it was applied", time.monotonic() - begun)
    assert fault in said
    assert release.condition("pools", "Ready")[:2] == ("False", "LastGoodServes")
    make(pods, "placed", "b")
    assert pods.placed("placed") == release.nodes[3]

    release.install()
    worse = document("worse", filters=_filters(_BAD))

    def denied() -> bool:
        return fault in refused(lambda: release.kubectl("apply", "--dry-run=server", "-f", "-", stdin=worse))

    wait_for("the check to be back", denied)


def test_what_somebody_changes_is_put_right_and_counted_and_told_once(release: Release, pods: Stage) -> None:
    release.put("drift", filters=_filters(), scores=_SCORES)
    release.ready("drift")
    before = release.counted("fairlead_drift_corrected")

    def replaced(path: str) -> None:
        uid = release.api.get(path)["metadata"]["uid"]
        release.api.delete(path)
        wait_for(f"{path} to be there again", lambda: release.api.get(path)["metadata"]["uid"] != uid)

    begun = time.monotonic()
    release.api.patch(DEPLOYMENT, {"spec": {"replicas": 1}})
    wait_for("it to be put right", lambda: release.api.get(DEPLOYMENT)["spec"]["replicas"] == 2)
    replaced(_RBAC)
    replaced(DEPLOYMENT)
    LOG.info("three things were put right in %.1f s", time.monotonic() - begun)

    def told() -> bool:
        notes = release.events("drift", "DriftCorrected")
        assert len(notes) <= 3, notes
        return notes == [
            "Deployment kube-scheduler-fairlead was edited",
            "Deployment kube-scheduler-fairlead was missing",
            "RoleBinding kube-scheduler-fairlead was missing",
        ]

    wait_for("it to be told", told)
    after = release.counted("fairlead_drift_corrected")
    grown = {key: after[key] - before.get(key, 0.0) for key in after if after[key] != before.get(key)}
    assert grown == {'kind="Deployment"': 2.0, 'kind="RoleBinding"': 1.0}
    release.ready("drift")
    make(pods, "after")
    assert pods.placed("after") == release.nodes[2]
    assert told()


def test_a_replica_that_stands_still_is_named_and_pods_are_placed_meanwhile(release: Release, pods: Stage) -> None:
    release.put("still", filters=_filters(), scores=_SCORES)
    release.ready("still")
    (other,) = [
        pod["metadata"]["name"] for pod in release.pods(OPERATOR) if pod["metadata"]["name"] != release.leader()
    ]
    stopped = processes(other)
    for one in stopped:
        one.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    try:
        message = release.until("still", "Programmed", "ReplicaSilent")
        LOG.info("said %.1f s after it was stopped: %s", time.monotonic() - begun, message)
        assert other in message
        assert release.condition("still", "Programmed")[0] != "True"
        assert release.condition("still", "Ready")[0] != "True"
        make(pods, "meanwhile")
        assert pods.placed("meanwhile") in release.nodes[::2]  # kube-scheduler goes on without scores that it waits for
        LOG.info("a pod was placed %.1f s after it was stopped", time.monotonic() - begun)
    finally:
        for one in stopped:
            one.send_signal(signal.SIGCONT)
    begun = time.monotonic()
    release.ready("still")
    LOG.info("ready %.1f s after it went on", time.monotonic() - begun)
    assert other in {pod["metadata"]["name"] for pod in release.pods(OPERATOR)}


def test_when_the_leader_is_killed_another_reconciles_and_pods_are_placed_meanwhile(
    release: Release, pods: Stage
) -> None:
    release.put("leader", filters=_filters(), scores=_SCORES)
    release.ready("leader")
    leader = release.leader()
    uid = release.api.get(_BUDGET)["metadata"]["uid"]
    begun = time.monotonic()
    for one in processes(leader):
        one.kill()
    release.api.delete(f"{PODS}/{leader}", gracePeriodSeconds="0")
    release.api.delete(_BUDGET)
    make(pods, "meanwhile")
    assert pods.placed("meanwhile") in release.nodes[::2]  # kube-scheduler goes on without scores that it waits for
    LOG.info("a pod was placed %.1f s after the leader was killed", time.monotonic() - begun)
    wait_for("another to reconcile", lambda: release.api.get(_BUDGET)["metadata"]["uid"] != uid)
    took = time.monotonic() - begun
    LOG.info("another reconciled %.1f s after the leader was killed", took)
    assert release.leader() != leader
    assert took < 20, f"another reconciled {took:.1f} s after the leader was killed"
    release.ready("leader")


def test_a_configuration_that_the_scheduler_refuses_is_not_run_and_the_status_says_why(
    release: Release, pods: Stage
) -> None:
    release.put("wiring", filters=_filters(), scores=_SCORES)
    release.ready("wiring")
    before = {pod["metadata"]["uid"] for pod in release.pods(SCHEDULER)}
    begun = time.monotonic()
    profile = {"plugins": {"filter": {"enabled": [{"name": "NoSuchPlugin"}]}}}
    release.install({"name": "fairlead", "profile": profile})
    message = release.until("wiring", "Programmed", "ConfigurationRejected", timeout_s=120)
    LOG.info("said %.1f s after the settings were changed: %s", time.monotonic() - begun, message)
    assert "NoSuchPlugin" in message
    assert release.condition("wiring", "Stalled")[0] == "True"
    make(pods, "meanwhile")
    assert pods.placed("meanwhile") == release.nodes[2]

    def put_back() -> bool:
        return "rolled back to the last good one" in release.condition("wiring", "Programmed")[2]

    wait_for("the last good one to be back", put_back)
    LOG.info("the last good one was back after %.1f s", time.monotonic() - begun)
    wait_for("its pod to go", lambda: {pod["metadata"]["uid"] for pod in release.pods(SCHEDULER)} == before)
    release.install()
    release.ready("wiring")
    assert {pod["metadata"]["uid"] for pod in release.pods(SCHEDULER)} == before


def on_the_page(kubeconfig: Path) -> ReadDecisions:
    """Decisions as the page reads them."""

    async def read() -> ReadDecisions:
        async with ClusterAccess(parser().parse_args(["ui", "--kubeconfig", str(kubeconfig)])) as access:
            return await ask_replicas(access)

    return asyncio.run(read())


_BINDINGS = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"


@pytest.fixture
def account(release: Release) -> Iterator[str]:
    """A service account that goes after the test, also if it fails, and with it a binding of its name."""
    api, path, name = release.cluster.api, f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", "reads-decisions"
    api.create(path, {"metadata": {"name": name}})
    yield name
    api.delete(f"{_BINDINGS}/{name}")
    api.delete(f"{path}/{name}")


def test_decisions_are_read_by_who_may_forward_a_port_of_the_operator(
    release: Release, pods: Stage, account: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = release.cluster.api
    release.put("pools", filters=_filters(), scores=_SCORES)
    release.ready("pools", within="180s")
    release.runs(2)  # one that is about to end is asked, too
    access = kubeconfig_of(release.cluster, NAMESPACE, account, tmp_path)
    command = ["decisions", "--kubeconfig", str(access), "-n", pods.name, "-o", "json"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "pods" in said
    assert "the Role of the chart whose name ends in -decisions" in said
    assert ROLE in on_the_page(access).unread

    binding = {
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "fairlead-decisions"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }
    api.create(_BINDINGS, binding)
    make(pods, "nowhere", "c")
    assert pods.refusal("nowhere").startswith("0/5 nodes are available: 5 another pool")

    def waits() -> Object | None:
        capsys.readouterr()
        assert main([*command, "--waiting", "--policy", "pools"]) == 0, capsys.readouterr().err
        found: list[Object] = json.loads(capsys.readouterr().out)["decisions"]
        return found[0] if found else None

    decision = wait_for("the decision", waits)
    [rule] = decision["rules"]
    assert (decision["pod"]["name"], decision["passed"], decision["node"]) == ("nowhere", 0, None)
    assert (rule["policy"], rule["rule"], rule["reason"], rule["nodes"]) == ("pools", "pool", "another pool", 5)
    shown = decision_table(on_the_page(access))
    row = next(row for row in shown.rows if row.pod == f"{pods.name}/nowhere")
    assert (row.outcome, row.reasons) == ("waits; 0 of 5 nodes passed", ["pools/pool: another pool, on 5 nodes"])
    assert sum("remembers since" in note for note in shown.notes) == 2
    release.kubectl("label", "node", release.nodes[0], "pool=c", "--overwrite")
    node = pods.placed("nowhere")

    def is_placed() -> bool:  # another replica may have been asked about it before
        capsys.readouterr()
        assert main(["decisions", "pod/nowhere", *command[1:]]) == 0
        found = json.loads(capsys.readouterr().out)["decisions"]
        return any((one["node"], one["passed"], one["waits"]) == (node, 1, False) for one in found)

    wait_for("the node it went to", is_placed)
    release.kubectl("label", "node", release.nodes[0], "pool=a", "--overwrite")
    api.delete(f"{_BINDINGS}/{account}")
    wait_for("the right to be gone", lambda: main(command) == 2)


def test_nothing_of_a_scheduler_is_written_while_a_policy_is_paused(release: Release, pods: Stage) -> None:
    release.put("paused", filters=_filters(), scores=_SCORES)
    release.ready("paused")
    release.kubectl("annotate", "sep", "paused", "fairlead.dev/paused=true")
    release.until("paused", "Programmed", "Paused")
    release.api.patch(DEPLOYMENT, {"spec": {"replicas": 1}})
    release.put("paused", filters=_filters(f"node.metadata.name == '{release.nodes[0]}'"), scores=_SCORES)
    release.until("paused", "Programmed", "Paused")
    make(pods, "after", "b")
    assert pods.placed("after") == release.nodes[0]
    assert release.api.get(DEPLOYMENT)["spec"]["replicas"] == 1
    release.kubectl("annotate", "sep", "paused", "fairlead.dev/paused-")
    wait_for("it to be put right", lambda: release.api.get(DEPLOYMENT)["spec"]["replicas"] == 2)
    release.ready("paused")


def test_a_deleted_policy_goes_and_frees_its_pods_and_a_renamed_one_rolls_nothing(
    release: Release, pods: Stage
) -> None:
    release.put("old", filters=_filters(), scores=_SCORES)
    release.ready("old")
    before = release.rolled()
    make(pods, "waits", "nowhere")
    pods.refusal("waits")
    begun = time.monotonic()
    release.kubectl("delete", "sep", "old", "--timeout=30s")
    LOG.info("gone %.1f s after it was deleted", time.monotonic() - begun)
    assert pods.placed("waits") in release.nodes
    LOG.info("its pod was placed %.1f s after it was deleted", time.monotonic() - begun)
    release.put("new", filters=_filters(), scores=_SCORES)
    release.ready("new")
    make(pods, "after")
    assert pods.placed("after") == release.nodes[2]
    assert release.rolled() == before


def test_when_it_is_uninstalled_nothing_is_left_but_the_policies_and_their_kind(release: Release, pods: Stage) -> None:
    release.put("stays", filters=_filters(), scores=_SCORES)
    release.ready("stays")
    make(pods, "waits", "nowhere")
    pods.refusal("waits")
    begun = time.monotonic()
    said = release.uninstall()
    LOG.info("uninstalled in %.1f s: %s", time.monotonic() - begun, said)
    assert "pods that name the scheduler fairlead: 1, pending: 1" in said
    assert f"{pods.name}/waits" in said
    assert "waits" in pods.places()

    want = _LEFT - release.before

    def left() -> set[tuple[str, ...]] | None:
        found = {row for row in release.everything() - release.before if row[1] != pods.name and row[2] != pods.name}
        if found == want:
            return found
        raise ClusterError(f"beyond what should be left: {sorted(found ^ want)}")

    wait_for("what belongs to what has gone to go, too", left)
    release.kubectl("delete", "sep", "stays", "--timeout=10s")

"""`fairlead operate` beside a real API server and scheduler: policies, callers, what it says, and who is woken."""

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender import Stage
from fairlead.control.loop.waker import WakeState, wake
from fairlead.kube.access.login import from_kubeconfig
from fairlead.kube.http.client import Client
from fairlead.pki.identities import OPERATOR, scheduler_identity
from fairlead.webhook.admission.admission_server import PATH as VALIDATE
from support.kube.crd import POLICIES, let_all_go, policies_served
from support.process.operating import HOST, Operating
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import Cluster, Kubectl, MakeNodes

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NONSENSE = [{"name": "pool", "expression": "node.metadata.lables['pool'] == 'ours'"}]
SOON_S = 10.0


def only(node: str) -> list[Object]:
    return [{"name": "only", "expression": f"node.metadata.name == '{node}'", "reason": "another one"}]


@pytest.fixture(scope="module")
def crd(control_plane: Cluster) -> Iterator[None]:
    with policies_served(control_plane.api):
        yield


@pytest.fixture
def operating(crd: None, ground: Cluster, namespace: str, tmp_path: Path) -> Iterator[Operating]:
    made = Operating(ground, namespace, tmp_path)
    yield made
    made.kill()
    let_all_go(ground.api)


def asked(scheduler: str, *names: str, namespace: str = "default") -> dict[str, Any]:
    pod = {"metadata": {"name": "x", "namespace": namespace, "uid": "u"}, "spec": {"schedulerName": scheduler}}
    return {"Pod": pod, "Nodes": None, "NodeNames": [*names]}


def filtered(operating: Operating, *names: str, caller: str = "", **more: str) -> Any:
    name = scheduler_identity(caller or operating.namespace)
    status, body = operating.ask(name, "/filter", asked(operating.namespace, *names, **more))
    assert status == 200, body
    return json.loads(body)


def test_each_scheduler_is_answered_about_its_pods_and_nobody_else_is(
    operating: Operating, kwok_nodes: MakeNodes
) -> None:
    nodes = kwok_nodes(2)
    operating.settings = "schedulers: [{name: listed}]"
    operating.start()
    operating.put("pool", filters=only(nodes[0]))
    operating.until("the nodes to be known", lambda _: filtered(operating, *nodes)["NodeNames"] == [nodes[0]])
    assert filtered(operating, *nodes, caller="listed")["NodeNames"] == nodes, "these pods are not its own"
    refused = filtered(operating, *nodes, namespace="kube-system")
    assert not refused["NodeNames"]
    assert {*refused["FailedAndUnresolvableNodes"].values()} == {
        "pods of namespace kube-system must not depend on Fairlead: give them another scheduler"
    }
    assert operating.ask(OPERATOR, "/filter", asked(operating.namespace, *nodes))[0] == 200
    for caller, path in ((scheduler_identity("other"), "/filter"), ("fairlead:webhook", "/filter")):
        assert operating.ask(caller, path, asked(operating.namespace))[0] == 403
    assert operating.ask(scheduler_identity(operating.namespace), "/state")[0] == 403
    assert operating.state().refused_connections == {HOST: "identity"}
    assert 'fairlead_webhook_refused_total{reason="identity"} 3' in operating.probe("metrics")[1]


def test_what_serves_is_said_and_goes_on_when_it_is_spoilt_and_after_a_restart(
    operating: Operating, ground: Cluster, kwok_nodes: MakeNodes
) -> None:
    nodes = kwok_nodes(2)
    operating.settings = f"schedulers: [{{name: {operating.namespace}}}]"  # nobody leads here who would remember it
    operating.start()
    operating.put("pool", filters=only(nodes[0]))
    said = operating.state().policies["pool"]
    assert (said.generation, said.serving, said.reason, said.fails) == ("1", "1", "Compiled", True)
    revisions = f"/apis/apps/v1/namespaces/{operating.namespace}/controllerrevisions"
    kept = wait_for("the policy to be kept", lambda: ground.api.items(revisions) or None)
    assert [one["metadata"]["labels"]["fairlead.dev/last-good"] for one in kept] == ["cluster"]
    operating.put("pool", filters=NONSENSE)
    for _ in range(2):
        state = operating.until(
            "it to serve", lambda one: "pool" in one.policies and one.policies["pool"].serving == "1"
        )
        said = state.policies["pool"]
        assert (said.generation, said.serving, said.reason) == ("2", "1", "LastGoodServes")
        assert "lables" in said.message
        assert filtered(operating, *nodes)["NodeNames"] == [nodes[0]]
        operating.kill()
        operating.start()
    operating.until("it to be looked at", lambda one: "pool" in one.policies)  # what was good serves before
    finalizers = {"metadata": {"finalizers": ["example.com/other"]}}
    ground.api.patch(f"{POLICIES}/pool", finalizers)
    ground.api.delete(f"{POLICIES}/pool")
    assert ground.api.exists(f"{POLICIES}/pool"), "somebody still holds on to it"
    operating.until("it to serve no more", lambda one: "pool" not in one.policies)
    assert filtered(operating, *nodes)["NodeNames"] == nodes
    wait_for("nothing of it to be kept", lambda: not ground.api.items(revisions))


def test_settings_are_followed_and_bad_ones_are_not(operating: Operating) -> None:
    key = "example.com/class"
    operating.start()
    operating.put("notes", binding={"annotations": [{"key": key, "expression": "'x'"}]})
    assert operating.state().policies["notes"].reason == "NothingServes"
    file = operating.folder / "settings.yaml"
    file.write_text("annotationPrefixes: [nonsense]")
    wait_for("the fault to be told", lambda: "annotationPrefixes" in operating.probe("readyz")[1])
    assert operating.is_ready()
    file.write_text("annotationPrefixes: [example.com/]")
    said = operating.until("the policy to serve", lambda one: one.policies["notes"].serving == "1")
    assert said.policies["notes"].binds


def test_settings_that_cannot_be_used_end_it_at_once(operating: Operating) -> None:
    operating.settings = "schedulers: [{name: default-scheduler}]"
    with pytest.raises(ClusterError, match="is never managed; set management to ConfigOnly"):
        operating.start()


@contextmanager
def leading(operating: Operating) -> Iterator[None]:
    """What the leader does about refused pods: it asks each second."""
    stop, failed = threading.Event(), list[BaseException]()

    async def lead() -> None:
        waking = WakeState(served=(await asyncio.to_thread(operating.state)).policy_set)
        async with Client(from_kubeconfig([operating.cluster.kubeconfig])) as client:
            while not stop.is_set():
                waking = waking.observe([await asyncio.to_thread(operating.state)])
                if waking.wait_s(time.monotonic()) == 0.0:
                    await wake(client, operating.namespace, datetime.now(UTC))
                    waking = waking.record_wake(time.monotonic())
                await asyncio.sleep(1.0)

    def run() -> None:
        try:
            asyncio.run(lead())
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert failed == []


def parked(stage: Stage, name: str) -> None:
    """Once the scheduler has put the pod where only an event gets it out."""
    line = f'moved to an internal scheduling queue" pod="{stage.name}/{name}" event="ScheduleAttemptFailure"'

    def look() -> bool:
        found = [one for one in stage.log().splitlines() if line in one]
        return bool(found) and 'queue="Unschedulable"' in found[-1]

    wait_for(f"{name} to be put away", look)


def early(node: str) -> Object:
    return {"name": "early", "expression": f"pod.metadata.name != 'early' || node.metadata.name == '{node}'"}


def in_time(stage: Stage, name: str, since: float) -> float:
    """How long after that the pod was placed."""
    stage.placed(name)
    return time.time() - since


def test_refused_pods_are_woken_when_a_rule_is_repaired_and_when_its_time_has_come(
    operating: Operating, stage: Stage, kwok_nodes: MakeNodes
) -> None:
    nodes = kwok_nodes(2)
    # its pods are in the operator's namespace, which a scheduler that is managed leaves alone
    operating.settings = f"schedulers: [{{name: {operating.namespace}, management: ConfigOnly}}]"
    operating.start()
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=25)
    later = f"pod.metadata.name != 'late' || now > timestamp('{at:%Y-%m-%dT%H:%M:%SZ}')"
    operating.put("gate", filters=[early("nobody"), {"name": "late", "expression": later}])
    stage.start(*operating.entries())
    with leading(operating):
        for name in ("early", "late"):
            stage.make_pod(name)
            assert "0/2 nodes are available" in stage.refusal(name)
            parked(stage, name)
        said = operating.until("the pods to be counted", lambda one: one.policies["gate"].rejected_pods == 2)
        assert not said.schedulable_again
        begun = time.time()
        operating.put("gate", filters=[early(nodes[1]), {"name": "late", "expression": later}])
        took = in_time(stage, "early", begun)
        assert stage.placed("early") == nodes[1]
        assert took < SOON_S, f"woken {took:.1f} s after the rule was repaired"
        took = in_time(stage, "late", at.timestamp())
        assert 0 <= took < SOON_S, f"woken {took:.1f} s after its time had come"
    operating.until("nobody to wait", lambda one: one.policies["gate"].rejected_pods == 0)


def hook(operating: Operating, name: str) -> Object:
    """As the chart makes it, but for where it is."""
    bundle = base64.b64encode(operating.authority().server_ca_bundle).decode()
    rule = {
        "apiGroups": ["fairlead.dev"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["schedulerextenderpolicies"],
    }
    url = f"https://{HOST}:{operating.ports[2]}{VALIDATE}"
    webhook = {
        "name": "policies.fairlead.dev",
        "rules": [rule],
        "clientConfig": {"url": url, "caBundle": bundle},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 2,
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": name}, "webhooks": [webhook]}


@pytest.fixture
def admitting(operating: Operating, ground: Cluster) -> Iterator[Api]:
    operating.start()
    ground.api.create(HOOKS, hook(operating, operating.namespace))
    yield ground.api
    ground.api.delete(f"{HOOKS}/{operating.namespace}")


def written(name: str, expression: str) -> str:
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    spec = {"filters": [{"name": "f", "expression": expression}]}
    return yaml.safe_dump({**kind, "metadata": {"name": name}, "spec": spec})


def test_applying_a_bad_policy_says_what_lint_says(operating: Operating, admitting: Api, kubectl: Kubectl) -> None:
    bad, fault = written("bad", "node.metadata.nam == 'a'"), "did you mean `name`"

    def denied() -> bool:
        try:
            kubectl("apply", "--dry-run=server", "-f", "-", stdin=bad)
        except ClusterError as error:
            return fault in str(error) and "spec.filters[0].expression: line 1, column 15: " in str(error)
        return False

    wait_for("the API server to ask", denied)
    with pytest.raises(ClusterError, match=fault):
        kubectl("apply", "-f", "-", stdin=bad)
    with pytest.raises(ClusterError, match=fault):
        kubectl("apply", "--server-side", "-f", "-", stdin=bad)
    assert not admitting.exists(f"{POLICIES}/bad")
    assert "created" in kubectl("apply", "-f", "-", stdin=written("good", "node.metadata.name == 'a'"))
    with pytest.raises(ClusterError, match=fault):
        kubectl("apply", "-f", "-", stdin=bad.replace("name: bad", "name: good"))


def test_with_the_check_away_policies_are_taken_and_it_is_said_all_the_same(
    operating: Operating, admitting: Api, kubectl: Kubectl
) -> None:
    operating.kill()
    bad = written("bad", "node.metadata.nam == 'a'")
    assert "created" in kubectl("apply", "-f", "-", stdin=bad)
    operating.start()
    said = operating.until("the policy to be known", lambda one: "bad" in one.policies).policies["bad"]
    assert said.reason == "NothingServes"
    assert "spec.filters[0].expression: line 1, column 15: " in said.message

    def edited(text: str) -> Object:
        return admitting.patch(f"{POLICIES}/bad", {"metadata": {"finalizers": [text]}})

    assert edited("fairlead.dev/a")["metadata"]["finalizers"] == ["fairlead.dev/a"], "its spec is as it was"


def test_an_edit_that_turns_a_policy_off_is_taken_though_its_rules_do_not_compile(
    operating: Operating, admitting: Api, kubectl: Kubectl
) -> None:
    admitting.delete(f"{HOOKS}/{operating.namespace}")
    kubectl("apply", "-f", "-", stdin=written("bad", "node.metadata.nam == 'a'"))
    admitting.create(HOOKS, hook(operating, operating.namespace))

    worse = json.dumps({"spec": {"filters": [{"name": "f", "expression": "nod"}]}})

    def denied() -> bool:
        try:
            kubectl("patch", "sep", "bad", "--type=merge", "--dry-run=server", f"--patch={worse}")
        except ClusterError as error:
            return "spec.filters[0].expression: " in str(error)
        return False

    wait_for("the API server to ask", denied)
    patch = json.dumps({"spec": {"mode": "Disabled"}})
    said = kubectl("patch", "sep", "bad", "--type=merge", f"--patch={patch}")
    assert "patched" in said
    state = operating.until("it to be off", lambda one: one.policies["bad"].mode == "Disabled")
    assert state.policies["bad"].reason == "NotCompiled"


def test_where_there_are_more_policies_than_may_be_the_oldest_serve(
    operating: Operating, ground: Cluster, kwok_nodes: MakeNodes
) -> None:
    nodes = kwok_nodes(2)
    operating.settings = "maxPolicies: 2"
    operating.start()
    operating.put("z-oldest", filters=only(nodes[0]))
    operating.put("y-second", filters=[{"name": "all", "expression": "true"}])
    time.sleep(1.1)  # what the API server writes of a time has no fractions
    operating.put("a-newest", filters=only(nodes[1]), failurePolicy="Ignore")
    said = operating.state().policies
    assert {name: one.serving for name, one in said.items()} == {"z-oldest": "1", "y-second": "1", "a-newest": ""}
    assert (said["a-newest"].reason, said["a-newest"].message.partition(",")[0]) == (
        "NothingServes",
        "there are more than 2 policies",
    )
    assert filtered(operating, *nodes)["NodeNames"] == [nodes[0]], "its failure policy is Ignore"
    operating.put("z-oldest", filters=only(nodes[1]))
    assert filtered(operating, *nodes)["NodeNames"] == [nodes[1]], "edits of the older ones count"
    ground.api.delete(f"{POLICIES}/y-second")
    operating.until("the newest to serve", lambda one: one.policies["a-newest"].serving == "1")

"""The leader on a real API server, and what is somebody else's: schedulers, Deployments, certificates."""

from base64 import b64encode
from collections.abc import Callable

from fairlead.control.loop.controller import now
from fairlead.pki.authority import current_leaf, server_hosts
from fairlead.pki.identities import OPERATOR, SERVER, scheduler_identity
from fairlead.render.operator_settings import parse_settings
from support.control.leader import ADDRESSES, SERVICE, LeaderSetup
from support.control.scheduler import FILTER, child, config_of, event_reasons, message, run_until_ready, versions
from support.kube.crd import POLICIES
from testbed.api import Object, wait_for


def test_a_deployment_that_is_not_ours_is_left_alone(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    labels = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    body = {"metadata": {"name": "kube-scheduler-s"}, "spec": {"selector": labels, "template": template, "replicas": 0}}
    ground.cluster.api.create(f"/apis/apps/v1/namespaces/{ground.namespace}/deployments", body)
    before = ground.cluster.api.get(child(ground, "deployments"))["spec"]
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("refused", lambda: ground.condition("p", "Accepted") == ("False", "SchedulerRefused"))
    assert ground.cluster.api.get(child(ground, "deployments"))["spec"] == before


def test_a_scheduler_that_somebody_else_runs_is_refused_until_it_is_listed(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    api = ground.cluster.api
    spec = {"schedulerName": "s", "nodeName": "n", "containers": [{"name": "x", "image": "x"}]}
    api.create(f"/api/v1/namespaces/{ground.namespace}/pods", {"metadata": {"name": "theirs"}, "spec": spec})
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("refused", lambda: ground.condition("p", "Accepted") == ("False", "SchedulerRefused"))
    assert not versions(ground)
    ground.apply("d", schedulerName="default-scheduler", filters=FILTER)
    wait_for("refused", lambda: ground.condition("d", "Accepted") == ("False", "SchedulerRefused"))
    ground.settings = parse_settings("schedulers: [{name: s}]")
    run_until_ready(ground)
    # else the next test's scheduler of this name is refused, too
    api.delete(f"/api/v1/namespaces/{ground.namespace}/pods/theirs", gracePeriodSeconds="0")


def test_certificates_of_others_are_asked_for_and_used(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work("tls: {mode: Provided}")
    ground.apply("p", schedulerName="o", filters=FILTER)

    def message() -> str:
        found = ground.cluster.api.get(f"{POLICIES}/p").get("status", {}).get("conditions", [])
        return next((one["message"] for one in found if one["type"] == "Accepted"), "")

    wait_for("what is missing", lambda: "kube-scheduler-o-tls does not exist" in message())
    authority, hosts = ground.stub.authority, server_hosts(SERVICE, ground.namespace, ADDRESSES)
    shown = {
        "kube-scheduler-o-tls": current_leaf(authority, scheduler_identity("o"), "client", frozenset(), now(), None),
        "fairlead-operator-tls": current_leaf(authority, OPERATOR, "client", frozenset(), now(), None),
        "fairlead-webhook-tls": current_leaf(authority, SERVER, "server", hosts, now(), None),
    }
    for name, pair in shown.items():
        data = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.client_ca_bundle}
        written = {key: b64encode(value).decode() for key, value in data.items()}
        body = {"metadata": {"name": name}, "type": "kubernetes.io/tls", "data": written}
        ground.cluster.api.create(f"/api/v1/namespaces/{ground.namespace}/secrets", body)
    ground.cluster.api.patch(f"{POLICIES}/p", {"metadata": {"annotations": {"look": "again"}}})
    run_until_ready(ground, "p", "o")


TOLD = {"name": "x", "image": "x", "args": ["--scheduler-name=theirs"]}


def test_a_scheduler_that_others_have_installed_is_refused_though_it_has_placed_nothing(
    at_work: Callable[..., LeaderSetup],
) -> None:
    ground = at_work()
    api, name = ground.cluster.api, f"others-{ground.namespace}"[:63]
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [TOLD]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, "replicas": 0}
    deployments = f"/apis/apps/v1/namespaces/{name}/deployments"
    api.create(deployments, {"metadata": {"name": "x"}, "spec": spec})
    renewed = f"{now():%Y-%m-%dT%H:%M:%S.%fZ}"
    held = {"holderIdentity": "x", "leaseDurationSeconds": 600, "renewTime": renewed, "acquireTime": renewed}
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases"
    api.create(leases, {"metadata": {"name": "held"}, "spec": held})
    ground.apply("p", schedulerName="theirs", filters=FILTER)
    ground.apply("q", schedulerName="held", filters=FILTER)
    for policy, who in (("p", f"Deployment {name}/x"), ("q", f"Lease {name}/held")):
        wait_for("refused", lambda policy=policy, who=who: who in message(ground, policy, "Accepted"))  # type: ignore[misc]
    assert not versions(ground, "theirs")
    assert not versions(ground, "held")
    api.delete(f"{deployments}/x")
    api.delete(f"{leases}/held")
    wait_for("theirs", lambda: config_of(ground, "theirs") != "")
    wait_for("held", lambda: config_of(ground, "held") != "")
    api.delete(f"/api/v1/namespaces/{name}")


def test_no_more_that_are_not_listed_begin_than_may(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work("maxUnlistedSchedulers: 1")
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("a Deployment", lambda: config_of(ground) != "")
    ground.apply("q", schedulerName="t", filters=FILTER)
    wait_for("refused", lambda: ground.condition("q", "Accepted") == ("False", "SchedulerRefused"))
    assert "maxUnlistedSchedulers is 1" in message(ground, "q", "Ready")
    assert not versions(ground, "t")
    ground.settings = parse_settings("unlistedSchedulers: Deny")
    wait_for("what is said of it", lambda: "unlistedSchedulers is Deny" in message(ground, "q", "Ready"))
    wait_for("what is said of that", lambda: "unlistedSchedulers is Deny" in message(ground, "p", "Ready"))
    assert config_of(ground)
    ground.settings = parse_settings("{unlistedSchedulers: Deny, schedulers: [{name: s}, {name: t}]}")
    wait_for("the other", lambda: config_of(ground, "t") != "")
    run_until_ready(ground)


def test_a_configuration_that_somebody_has_forged_goes(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    run_until_ready(ground)
    api, maps = ground.cluster.api, f"/api/v1/namespaces/{ground.namespace}/configmaps"
    good = api.get(f"{maps}/kube-scheduler-s.{config_of(ground)}")
    kept = {key: good["metadata"][key] for key in ("labels", "annotations")}
    data = {**good["data"], "pod.yaml": "evil"}
    forged: Object = {"metadata": {"name": "zz", **kept}, "data": data, "immutable": True}
    api.create(maps, forged)
    wait_for("it to go", lambda: not api.exists(f"{maps}/zz"))
    wait_for("it to be told", lambda: "DriftCorrected" in event_reasons(ground, "p"))
    assert api.exists(f"{maps}/{good['metadata']['name']}")
    # under the name of the good one, too: it is put back as it was
    api.delete(f"{maps}/{good['metadata']['name']}")
    name = {**forged["metadata"], "name": good["metadata"]["name"]}
    if not api.exists(f"{maps}/{name['name']}"):
        api.create(maps, {**forged, "metadata": name})
    wait_for("the good one", lambda: api.get(f"{maps}/{name['name']}")["data"] == good["data"])

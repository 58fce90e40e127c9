"""A CRD that is older than the operator: what the API server removes is said, until the right one is there again."""

import copy
from collections.abc import Callable, Iterator

import pytest
import yaml
from generate.crds import FILE

from support.control.leader import LeaderSetup
from support.control.scheduler import message
from support.kube.crd import POLICIES
from testbed.api import Api, Object, wait_for
from testbed.fixtures import Cluster

_CRD = yaml.safe_load(FILE.read_text())
_PATH = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_CRD['metadata']['name']}"
_FILTERS = [
    {"name": "a", "expression": "true"},
    {"name": "b", "nodeReadiness": {"conditions": [{"type": "NetworkReady"}]}},
]


def older() -> Object:
    """The CRD of a version that had no nodeReadiness."""
    crd = copy.deepcopy(_CRD)
    (version,) = crd["spec"]["versions"]
    rule = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["filters"]["items"]
    del rule["properties"]["nodeReadiness"]
    (check,) = [one for one in rule["x-kubernetes-validations"] if "has(self.nodeReadiness)" in one["rule"]]
    check["rule"] = "(has(self.expression) ? 1 : 0) + (has(self.custom) ? 1 : 0) == 1"
    del check["messageExpression"]
    return dict(crd)


def put(api: Api, crd: Object) -> None:
    """In the place of the one that is there."""
    api.patch(_PATH, {"spec": {"versions": crd["spec"]["versions"]}})


@pytest.fixture
def ground(
    with_crd: Cluster, at_work: Callable[..., LeaderSetup], monkeypatch: pytest.MonkeyPatch
) -> Iterator[LeaderSetup]:
    monkeypatch.setattr("fairlead.control.loop.crd_check._CHECK_S", 0.5)
    yield at_work()
    put(with_crd.api, _CRD)


def test_what_an_older_crd_removes_is_said_of_the_policies_that_lose_it(ground: LeaderSetup) -> None:
    api = ground.cluster.api
    ground.apply("p", schedulerName="s", filters=_FILTERS)
    ground.apply("q", schedulerName="s", filters=_FILTERS[:1])
    wait_for("it to be accepted", lambda: ground.condition("p", "Accepted") == ("True", "Accepted"))
    exposed = ground.operator.metrics
    assert [*exposed._crd_outdated().values()] == [0.0]

    put(api, older())
    wait_for("the reason", lambda: ground.condition("p", "Accepted") == ("False", "CRDOutdated"))
    assert ground.condition("p") == ("False", "CRDOutdated")
    said = message(ground, "p", "Accepted")
    assert said.startswith("nothing decides in spec.filters[1]: ")
    assert "lacks spec.filters.nodeReadiness, " in said
    assert "nodeReadiness" not in api.get(f"{POLICIES}/p")["spec"]["filters"][1]
    assert ground.condition("q", "Accepted") == ("True", "Accepted")
    assert [*exposed._crd_outdated().values()] == [1.0]

    put(api, _CRD)
    wait_for("the metric", lambda: [*exposed._crd_outdated().values()] == [0.0])
    ground.apply("p", schedulerName="s", filters=_FILTERS)
    wait_for("it to be accepted", lambda: ground.condition("p", "Accepted") == ("True", "Accepted"))

"""With the real scheduler and `fairlead serve`, Kubernetes' own groups are left to the scheduler, and rules count."""

from collections.abc import Iterator
from typing import Any

import pytest

from extender import Stage
from support.process.serving import Serving
from testbed.api import Object
from testbed.fixtures import Cluster, MakeNodes, raised_with_groups
from testbed.node_template import equal

_JOB = "example.org/job"
_GANG: dict[str, Any] = {"name": "jobs", "group": f"pod.metadata.labels[?'{_JOB}'].orValue('')", "size": "8"}


@pytest.fixture(scope="module")
def control_plane(this_run: str, kubernetes_version: str, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A cluster that serves PodGroups."""
    with raised_with_groups(f"test-natively-{this_run}", kubernetes_version, pytestconfig) as cluster:
        yield cluster


def only(node: str, reason: str) -> list[Object]:
    return [{"name": "only", "expression": f"node.metadata.name != '{node}'", "reason": reason}]


def test_a_rule_that_rejects_a_member_rejects_its_group_until_it_is_edited(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    *_, last = kwok_nodes(4, equal(cpu="1"))
    # Of a group as gang would have it there would have to be eight.
    serving.put("rules", filters=only(last, "kept free"), binding={"gang": [_GANG]})
    serving.start()
    stage.start(*serving.entries(hold_s=30))
    group: Object = {"metadata": {"name": "red"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}
    stage.api.create(f"/apis/scheduling.k8s.io/v1beta1/namespaces/{stage.name}/podgroups", group)
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}
    for number in range(4):
        spec = {
            "schedulerName": stage.name,
            "schedulingGroup": {"podGroupName": "red"},
            "automountServiceAccountToken": False,
            "containers": [container],
        }
        stage.api.create(stage.path, {"metadata": {"name": f"red-{number}", "labels": {_JOB: "red"}}, "spec": spec})
    for number in range(4):
        assert "waiting for members" not in stage.refusal(f"red-{number}")
    assert not any(stage.places().values())
    serving.edit(lambda: serving.put("rules", binding={"gang": [_GANG]}))
    assert len(stage.all_placed()) == 4

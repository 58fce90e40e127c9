"""`fairlead serve` learns in memory from what becomes of the pods of its scheduler, and publishes nothing."""

from typing import Final

from extender import Stage
from fairlead.learned.published import LABEL
from support.learned.pods import failed_now
from support.process.serving import Serving
from testbed.api import wait_for
from testbed.fixtures import MakeNodes

_WORKS: Final = {"name": "works", "weight": 100, "kubeRL": {"type": "'demo'"}}


def test_pods_go_where_none_has_failed(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    failing, other = kwok_nodes(2)
    serving.put("learns", scores=[_WORKS])
    serving.start()
    stage.start(*serving.entries())
    stage.make_pod("fails", on=failing)
    wait_for("fails to run", lambda: stage.pod("fails").get("status", {}).get("phase") == "Running")
    stage.api.patch(f"{stage.path}/fails/status", {"status": failed_now("first")})
    wait_for("a pair to be learned", lambda: serving.metric("fairlead_learned_entries", policy="learns") == 1)
    for number in range(6):
        stage.make_pod(f"demo-{number}")
        assert stage.placed(f"demo-{number}") == other
    assert serving.log().count("learned.in_memory") == 1
    assert "fails" in stage.living()
    assert not stage.api.items(f"/api/v1/namespaces/{stage.name}/configmaps", labelSelector=LABEL)

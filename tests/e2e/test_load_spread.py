"""Pods follow the load that a real Prometheus measures, and the load follows the pods; its parts fail in turn."""

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from extender import Stage
from support.process.serving import Serving
from support.spread import CORES, LIFE_S, MAX_AGE_S, NODES, Flow, spec, spread
from support.spread.flow import Placed
from support.webhook.exporter import exporting
from testbed import prometheus
from testbed.api import Object, wait_for
from testbed.fixtures import MakeNodes
from testbed.layout import free_ports
from testbed.node_template import equal

LOG = logging.getLogger(__name__)
_SEEN_S = 10
"""For so long the spread is looked at, once all pods that were placed before are gone."""
_BETTER = 0.75
_STILL_S = 3.0
_CLOCK_S = 1
"""The API server writes whole seconds."""


@pytest.mark.usefixtures("prometheus_program")
def test_load_is_spread_and_no_value_is_used_past_its_age(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes, tmp_path: Path
) -> None:
    nodes = kwok_nodes(NODES, equal(cpu=f"{CORES:g}", memory="64Gi", pods=250))
    flow = Flow(api=stage.api, namespace=stage.name, scheduler=stage.name, nodes=nodes)
    exporter_port, server_port = free_ports(2)

    def exporter() -> ExitStack:
        stack = ExitStack()
        stack.enter_context(exporting(flow.scrape, exporter_port))
        return stack

    def server() -> ExitStack:
        stack = ExitStack()
        stack.enter_context(prometheus.running(tmp_path, [f"127.0.0.1:{exporter_port}"], port=server_port))
        return stack

    def put(variant: str) -> None:
        serving.put("spread", **spec(variant, stage.name))

    serving.settings = tmp_path / "settings.yaml"
    url = f"http://127.0.0.1:{server_port}"
    serving.settings.write_text(yaml.safe_dump({"prometheus": [{"name": "default", "url": url}]}))
    with ExitStack() as parts:
        parts.enter_context(exporter_parts := exporter())
        parts.enter_context(server_parts := server())
        put("none")
        serving.start()
        stage.start(*serving.entries(), podMaxBackoffSeconds=2)
        with flow:
            flow.run(LIFE_S)
            without = spread(flow.run(_SEEN_S))
            known = {*flow.placed}
            serving.edit(lambda: put("safe"))
            flow.run(LIFE_S)
            with_rule = spread(flow.run(_SEEN_S))
            LOG.info("variance %.4f without the rule, %.4f with it", without.variance, with_rule.variance)
            assert not _refused_for_data(stage), "neither an edit nor a first value that is still to come refuses pods"
            assert with_rule.variance < _BETTER * without.variance, (with_rule, without)

            exporter_parts.close()
            wait_for("values to be too old", lambda: _stands_still(stage, flow))
            parts.enter_context(exporter())
            flow.run(5)

            server_parts.close()
            wait_for("values to be too old again", lambda: _stands_still(stage, flow))
            parts.enter_context(server())
            flow.run(5)
    by_rule = [one for name, one in flow.placed.items() if name not in known]
    late = {one.name: age for one in by_rule if (age := _age_s(one, flow.scrapes)) > MAX_AGE_S + _CLOCK_S}
    assert not late, "a pod is on a node whose value was too old"


def _age_s(pod: Placed, scrapes: Sequence[float]) -> float:
    """How old the newest value was when a pod got its node."""
    return pod.scheduled - max(at for at in scrapes if at <= pod.scheduled + _CLOCK_S)


def _stands_still(stage: Stage, flow: Flow) -> bool:
    """Whether pods wait because values are too old, and none has got a node for a while."""
    if time.monotonic() - max(one.at for one in flow.placed.copy().values()) < _STILL_S:
        return False
    return any(
        one.get("reason") == "Unschedulable" and "is stale" in one["message"]
        for pod in stage.api.items(stage.path, fieldSelector="spec.nodeName=")
        for one in pod.get("status", {}).get("conditions", [])
    )


def _refused_for_data(stage: Stage) -> list[str]:
    events: list[Object] = stage.api.items(
        f"/apis/events.k8s.io/v1/namespaces/{stage.name}/events", fieldSelector="reason=FailedScheduling"
    )
    return [str(one["note"]) for one in events if "data " in str(one["note"])]

"""Values from a real Prometheus decide where pods go, and no value is used past its age."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from support.process.serving import Serving
from support.webhook.exporter import exporting
from testbed import prometheus
from testbed.api import wait_for
from testbed.fixtures import MakeNodes
from testbed.layout import free_ports

AGE_S = 12
YOUNG = "1h"


@pytest.fixture
def exporter() -> Iterator[ExitStack]:
    """What serves the load; closed, it is dead."""
    with ExitStack() as stack:
        yield stack


@pytest.mark.usefixtures("prometheus_program")
def test_load_of_prometheus_decides_until_it_is_too_old(
    serving: Serving, kwok_nodes: MakeNodes, exporter: ExitStack, tmp_path: Path
) -> None:
    idle, busy, unmeasured = kwok_nodes(3)
    (port,) = free_ports(1)
    exporter.enter_context(exporting(f'load{{node="{idle}"}} 0.2\nload{{node="{busy}"}} 0.95\n', port))
    with prometheus.running(tmp_path, [f"127.0.0.1:{port}"]) as server:
        servers = [{"name": "default", "url": f"http://127.0.0.1:{server.port}"}]
        serving.settings = tmp_path / "settings.yaml"
        serving.settings.write_text(yaml.safe_dump({"prometheus": servers}))
        load = {"query": "load", "nodeLabel": "node", "interval": "5s"}
        rules = [{"value": "load", "operator": "GreaterThan", "target": 0.8}]
        serving.put(
            "load",
            data=[{"name": "load", "prometheus": load, "maxAge": f"{AGE_S}s"}],
            filters=[{"name": "not-hot", "telemetry": {"rules": rules}}],
            scores=[{"name": "idle", "expression": "100.0 * (1.0 - data.load)", "weight": 5}],
        )
        pod = {
            "metadata": {"name": "probe", "namespace": serving.namespace},
            "spec": {"schedulerName": serving.namespace},
        }
        asked = {"Pod": pod, "NodeNames": [idle, busy, unmeasured]}

        def reasons() -> dict[str, str]:
            answer = serving.call("filter", asked)
            return dict.fromkeys(answer["NodeNames"], "") | (answer["FailedAndUnresolvableNodes"] or {})

        serving.start()
        measured = {idle: "", busy: "load is too high", unmeasured: "data load is missing"}
        wait_for("the load to be scraped", lambda: reasons() == measured or None)
        scores = {one["Host"]: one["Score"] for one in serving.call("prioritize", asked)}
        assert scores[idle] > scores[unmeasured] > scores.get(busy, 0), "what is not measured is neither good nor bad"

        exporter.close()
        stale = measured | {idle: "data load is stale", busy: "data load is stale"}
        wait_for("values to grow stale", lambda: reasons() == stale or None, timeout_s=AGE_S + 30)

        exporter.enter_context(exporting(f'load{{node="{idle}"}} 0.9\nload{{node="{busy}"}} 0.1\n', port))
        turned = {idle: "load is too high", busy: "", unmeasured: "data load is missing"}
        wait_for("it to be scraped again", lambda: reasons() == turned or None)

        serving.edit(
            lambda: serving.put(
                "load",
                data=[{"name": "load", "prometheus": load, "default": 0.5, "defaultFor": YOUNG}],
                filters=[{"name": "not-hot", "telemetry": {"rules": rules}}],
            )
        )
        assert reasons() == turned | {unmeasured: ""}, "an edit refuses nobody for want of a first value"
    wait_for("it to say what is wrong", lambda: "data: prometheus default: load: " in serving.readyz() or None)

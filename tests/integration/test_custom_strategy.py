"""`fairlead operate` with the strategy of the guide in its folder, beside a real API server."""

from pathlib import Path

from fairlead.cli.inputs.strategy_folder import VARIABLE
from support.docs.pages import CHECKOUT, Page
from support.kube.crd import POLICIES
from support.process.operating import Operating
from testbed.fixtures import Cluster


def test_a_policy_names_it_and_the_operator_checks_its_parameters(
    with_crd: Cluster, namespace: str, tmp_path: Path
) -> None:
    folder = tmp_path / "strategies"
    folder.mkdir()
    for block in Page(CHECKOUT / "docs/guide/write-a-strategy.md").blocks():
        if block.title == "spread.py":
            (folder / block.title).write_text(block.text)
    replica = Operating(with_crd, namespace, tmp_path, environment={VARIABLE: str(folder)})
    try:
        replica.start()
        params = {"label": "app", "max": 2}
        replica.put("custom", filters=[{"name": "f", "custom": {"name": "spread", "params": params}}])
        found = replica.state().policies["custom"]
        assert (found.reason, found.serving) == ("Compiled", found.generation)
        assert found.rules[0].uses == ("pod.metadata.labels.app", "pod.metadata.namespace", "pods")
        stored = with_crd.api.get(f"{POLICIES}/custom")["spec"]["filters"][0]["custom"]["params"]
        assert stored == params, "the API server keeps what it does not know"

        wrong = {**params, "max": 0, "mx": 1}
        replica.put("custom", filters=[{"name": "f", "custom": {"name": "spread", "params": wrong}}])
        last = replica.state().policies["custom"]
        assert (last.reason, last.serving) == ("LastGoodServes", found.generation)
        assert last.message == (
            "spec.filters[0].custom.params.max: must be at least 1, not 0; "
            "spec.filters[0].custom.params.mx: there is no such field; did you mean max?"
        )
    finally:
        replica.kill()

"""Overlays of kustomize, with the kustomize that is in kubectl: what a patch leaves of a policy's rules."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from generate import kustomize

from support.docs.pages import CHECKOUT, Page
from testbed import build
from testbed.versions import KUBERNETES, program

POLICY: Final = CHECKOUT / "examples" / "night-batch.yaml"
NAMES: Final = [one["name"] for one in yaml.safe_load(POLICY.read_text())["spec"]["filters"]]
LESS: Final = "requested['cpu'] < 0.5 * allocatable['cpu']"
ONE_FILTER: Final[dict[str, Any]] = {"filters": [{"name": "not-crowded", "expression": LESS}]}


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """The files of the guide: a base with a policy, and an overlay with the schema and a patch."""
    blocks = {one.title: one.text for one in Page(CHECKOUT / "docs" / "guide" / "gitops.md").blocks() if one.title}
    for name in ("base/kustomization.yaml", "production/kustomization.yaml", "production/less-crowded.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(blocks[name])
    shutil.copy(POLICY, tmp_path / "base")
    shutil.copy(kustomize.FILE, tmp_path / "production" / "openapi.json")
    return tmp_path / "production"


def _built(overlay: Path) -> dict[str, Any]:
    kubectl = build.build([program("kubectl", KUBERNETES[0])])["kubectl"]
    done = subprocess.run([kubectl, "kustomize", overlay], capture_output=True, text=True, check=True, timeout=60)
    spec: dict[str, Any] = yaml.safe_load(done.stdout)["spec"]
    return spec


def _patch(overlay: Path, spec: dict[str, Any]) -> None:
    patch = yaml.safe_load((overlay / "less-crowded.yaml").read_text())
    (overlay / "less-crowded.yaml").write_text(yaml.safe_dump(patch | {"spec": spec}))


def test_the_schema_is_that_of_the_custom_resource() -> None:
    before = kustomize.FILE.read_text()
    kustomize.write()
    assert kustomize.FILE.read_text() == before, "run `make crds`"


def test_the_overlay_of_the_guide_changes_one_filter(overlay: Path) -> None:
    before = yaml.safe_load(POLICY.read_text())["spec"]
    after = _built(overlay)
    [changed] = [one for one in after["filters"] if one not in before["filters"]]
    [original] = [one for one in before["filters"] if one["name"] == changed["name"]]
    assert changed == {**original, "expression": LESS}
    assert sorted(one["name"] for one in after["filters"]) == sorted(NAMES)
    assert after["scores"] == before["scores"]


def test_without_the_schema_the_other_filters_are_gone(overlay: Path) -> None:
    """The guide says so; if a kustomize comes that needs no schema, the guide can be shorter."""
    settings = yaml.safe_load((overlay / "kustomization.yaml").read_text())
    del settings["openapi"]
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(settings))
    assert [one["name"] for one in _built(overlay)["filters"]] == ["not-crowded"]


def test_a_filter_is_added_and_one_is_removed(overlay: Path) -> None:
    new = {"name": "new", "expression": "true"}
    _patch(overlay, {"filters": [new, {"name": NAMES[0], "$patch": "delete"}]})
    assert sorted(one["name"] for one in _built(overlay)["filters"]) == sorted(["new", *NAMES[1:]])


def test_every_list_of_rules_has_its_key() -> None:
    [policy] = kustomize.schema()["definitions"].values()
    spec = policy["properties"]["spec"]["properties"]
    keys = {name: one.get("x-kubernetes-patch-merge-key") for name, one in spec.items() if one.get("type") == "array"}
    assert keys == dict.fromkeys(("variables", "data", "filters", "scores"), "name")
    assert "status" not in policy["properties"]

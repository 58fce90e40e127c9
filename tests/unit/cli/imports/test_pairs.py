"""Policies of other projects' objects, whole: `out.yaml` of tests/data/imports is what `in.yaml` becomes."""

from pathlib import Path

import pytest

from support.cli.imported import check, imported_pair, pairs


@pytest.mark.parametrize("folder", pairs(), ids=lambda one: f"{one.parent.name}/{one.name}")
def test_an_object_becomes_the_policy_beside_it(folder: Path) -> None:
    """`make crds` writes what changes: look at it."""
    found = imported_pair(folder)
    assert found.faults == ()
    assert found.text == (folder / "out.yaml").read_text()
    for policy in found.policies:
        check(policy)


def test_every_project_has_pairs() -> None:
    assert {one.parent.name for one in pairs()} == {"crane", "tas", "trimaran"}

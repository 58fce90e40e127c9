"""Reading of a live cluster for the page: with the rights of the user, naming what may not be read."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.cluster_access import ClusterAccess
from fairlead.cli.inputs.replica_decisions import ROLE
from fairlead.cli.main import parser
from fairlead.cli.ui.decision_table import OF_FILES, ReadDecisions
from fairlead.cli.ui.page_reader import NEW, PageReader
from fairlead.cli.ui.page_templates import page_templates
from fairlead.cli.ui.page_view import PageView, page_view
from support.cli.page import node, pod, policy, read, write
from support.cli.status_api import api_server, items
from support.kube.crd import POLICIES

CLASS: Final = ("node.metadata.labels[?'gpu'].orValue('') == pod.metadata.labels[?'gpu'].orValue('')", "wrong class")
FORBIDDEN: Final = 403
_META: Final = {"name": "class", "uid": "u", "generation": 3}
_APPLIED: Final = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "a"}
_STORED: Final = {
    **policy("class", CLASS, mode="Shadow"),
    "metadata": {**_META, "annotations": _APPLIED, "managedFields": [{}]},
    "status": {"servingGeneration": 2, "observedGeneration": 3, "shadow": {"generation": 3, "calls": 9, "pods": 4}},
}
CLUSTER: Final[Mapping[str, object]] = {
    "/version": {},
    "/api/v1/nodes": items(node("a", labels={"gpu": "a100"})),
    "/api/v1/pods": items(pod("p", gpu="a100")),
    "/api/v1/namespaces": items({"metadata": {"name": "ml"}}),
    "/api/v1/configmaps": items(),
    POLICIES: items({**_STORED, "status": {**_STORED["status"], "servingGeneration": 3}}),
}


def _page(answers: Mapping[str, object], folder: Path, **seam: Any) -> PageView:
    with api_server(answers, folder) as kubeconfig:
        options = parser().parse_args(["ui", "--kubeconfig", str(kubeconfig)])
        return page_view(asyncio.run(PageReader(options, **seam).read()))[0]


def test_a_live_cluster_is_read_with_what_the_status_says(tmp_path: Path) -> None:
    view = _page(CLUSTER, tmp_path)
    [row] = view.policies
    assert (view.where, view.is_live, row.mode, row.generation) == ("the cluster", True, "Shadow", "3")
    assert row.live is not None
    assert (row.live.sums["calls"], row.live.sums["pods"]) == (9, 4)
    assert [command.split()[:2] for command in row.commands] == [
        ["kubectl", "describe"],
        ["fairlead", "shadow"],
        ["kubectl", "patch"],
    ]
    assert view.glance.waiting == 1


def test_the_text_of_the_editor_is_what_an_author_would_write(tmp_path: Path) -> None:
    texts = _page(CLUSTER, tmp_path).texts
    assert [*texts] == ["class", NEW]
    assert "status" not in texts["class"]
    assert "last-applied" not in texts["class"]
    assert "uid" not in texts["class"]
    assert "team: a" in texts["class"]


def test_what_is_behind_is_said(tmp_path: Path) -> None:
    stored = {**_STORED, "status": {"servingGeneration": None}}
    no_operator = {"/api/v1/namespaces/fairlead-system/pods": items()}
    view = _page({**CLUSTER, POLICIES: items(stored), **no_operator}, tmp_path)
    behind = [(fact.subject, fact.text) for fact in view.glance.facts if fact.kind == "Behind"]
    assert ("class", "generation 3; no replica serves it, as none is ready") in behind
    assert any(subject == "scheduler fairlead" and "no replica answers" in text for subject, text in behind)


@pytest.mark.parametrize("modes", [("Shadow", "Shadow"), ("Enforce", "Shadow")], ids=["goes on", "waits"])
def test_rules_in_shadow_are_not_judged_while_no_replica_answers(modes: Sequence[str], tmp_path: Path) -> None:
    """Whether pods are placed without policies or wait: neither says that a policy applies to none of them."""
    rules = [{"name": f"f{at}", "expression": "true", "reason": "none", "mode": mode} for at, mode in enumerate(modes)]
    stored = {**_STORED, "spec": {"filters": rules}, "status": {**_STORED["status"], "servingGeneration": 3}}
    no_operator = {"/api/v1/namespaces/fairlead-system/pods": items()}
    view = _page({**CLUSTER, POLICIES: items(stored), **no_operator}, tmp_path)
    said = "has rules in shadow that are not judged while no replica of the operator answers"
    facts = [fact.text for fact in view.glance.facts if fact.kind == "Shadow"]
    assert facts == [said, "on live calls: 9 of 9 calls compared; pods: 4 compared"]
    page = page_templates().get_template("page.html").render(view=view)
    assert f"<p>It {said}.</p>" in page


def test_what_may_not_be_read_is_named(tmp_path: Path) -> None:
    view = _page({**CLUSTER, "/api/v1/namespaces": FORBIDDEN}, tmp_path)
    assert any(note.startswith("namespaces are unknown: ") for note in view.notes)


def test_who_may_list_pods_of_a_namespace_only_sees_those(tmp_path: Path) -> None:
    """The namespace is that of the kubeconfig."""
    answers = {
        **{path: answer for path, answer in CLUSTER.items() if path != "/api/v1/namespaces"},
        "/api/v1/pods": FORBIDDEN,
        "/api/v1/namespaces/default": {"metadata": {"name": "default"}},
        "/api/v1/namespaces/default/pods": items(
            {**pod("mine", gpu="a100"), "metadata": {"name": "mine", "namespace": "default"}}
        ),
    }
    view = _page(answers, tmp_path)
    assert view.glance.waiting == 1
    assert any(note.startswith("pods on nodes are unknown") for note in view.notes)


def test_who_may_not_list_nodes_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="you may not list nodes"):
        _page({**CLUSTER, "/api/v1/nodes": FORBIDDEN}, tmp_path)


def test_decisions_that_may_not_be_read_name_the_role(tmp_path: Path) -> None:
    """To list pods of the operator's namespace is the first thing that the Role allows."""
    view = _page({**CLUSTER, "/api/v1/namespaces/fairlead-system/pods": FORBIDDEN}, tmp_path)
    assert ROLE in view.decisions.unread
    view = _page({**CLUSTER, "/api/v1/namespaces/fairlead-system/pods": items()}, tmp_path)
    assert view.decisions.unread == "no pod of the operator runs in fairlead-system"  # the page has no option for it


def test_decisions_come_from_a_source(tmp_path: Path) -> None:
    async def source(_: ClusterAccess) -> ReadDecisions:
        return ReadDecisions([{"time": "2027-01-01T00:00:00Z", "pod": {"namespace": "ml", "name": "p"}}])

    view = _page(CLUSTER, tmp_path, decisions=source)
    assert [row.pod for row in view.decisions.rows] == ["ml/p"]


def test_of_files_the_editor_keeps_comments_and_there_are_no_decisions(tmp_path: Path) -> None:
    options = write(tmp_path, [node("a"), pod("p")], [policy("one", CLASS)])
    rules = Path(options[3])
    rules.write_text(f"# why\n{rules.read_text()}")
    found = read(options)
    assert found.texts["one"].startswith("# why\n")
    assert found.decisions.unread == OF_FILES
    rules.write_text(f"{rules.read_text()}---\n{rules.read_text().replace('name: one', 'name: two')}")
    assert [*read(options).texts] == ["one", "two", NEW]

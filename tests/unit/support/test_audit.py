"""The audit log is read as it was written, and rights are told from requests."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.render.rbac import ApiRequest, RbacRule, RoleGrant
from support.kube import audit

_ME = audit.account("ours", "me")


def event(verb: str = "get", *, code: int = 200, stage: str = "ResponseComplete", **about: str) -> str:
    fields: dict[str, Any] = {
        "stage": stage,
        "verb": verb,
        "user": {"username": _ME},
        "requestReceivedTimestamp": "2026-11-21T18:00:00.000001Z",
        "responseStatus": {"code": code},
        "objectRef": {"resource": "pods", "namespace": "ours", "name": "p", **about},
    }
    return json.dumps(fields) + "\n"


def test_a_watch_counts_once_when_it_begins_and_all_else_when_it_is_over() -> None:
    written = [
        event("watch", stage="ResponseStarted"),
        event("watch"),
        event("watch", code=403),
        event("get", stage="ResponseStarted", subresource="log"),
        event("get", subresource="log"),
    ]
    found = [(one.verb, one.resource, one.code) for one in audit.answered_requests(written)]
    assert found == [("watch", "pods", 200), ("watch", "pods", 403), ("get", "pods/log", 200)]


def test_older_files_come_first_and_half_a_line_is_left(tmp_path: Path) -> None:
    (tmp_path / "audit.log").write_text(event("get") + event("list")[:20])
    (tmp_path / "audit-2026-11-21T18-00-00.000.log").write_text(event("delete"))
    (tmp_path / "audit-2026-11-21T17-00-00.000.log").write_text(event("create"))
    found = [one.verb for one in audit.answered_requests(audit.lines(tmp_path / "audit.log"))]
    assert found == ["create", "delete", "get"]


def test_who_asked_what_was_refused_and_what_changes_something() -> None:
    found = [
        *audit.answered_requests([event("list", code=403), event("patch"), event("patch", resource="leases", name="l")])
    ]
    assert [one.verb for one in audit.denied(found)] == ["list"]
    assert [one.resource for one in audit.writes(found, but={"leases l"})] == ["pods"]
    assert len(audit.by(found, "system:serviceaccount:ours:*")) == len(audit.by(found, _ME)) == 3
    assert audit.by(found, audit.account("ours", "m")) == []
    assert audit.by(found, _ME, since=found[0].at.replace(microsecond=2)) == []


_GRANTS = (
    RoleGrant("cluster", (RbacRule("", "", ("pods",), ("get",)),)),
    RoleGrant("own", (RbacRule("", "", ("pods",), ("create", "patch", "delete")),)),
    RoleGrant("own", (RbacRule("", "r", ("roles",), ("bind",), ("a", "b")),)),
)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (event("get"), {("get", "pods", "cluster", "")}),
        (event("get", namespace="other"), {("get", "pods", "cluster", "")}),
        (event("delete"), {("delete", "pods", "own", "")}),
        (event("delete", namespace="other"), set()),
        (event("patch"), {("patch", "pods", "own", "")}),
        (event("patch", code=201), {("patch", "pods", "own", ""), ("create", "pods", "own", "")}),
        (event("bind", apiGroup="r", resource="roles", name="b"), {("bind", "roles", "own", "b")}),
        (event("bind", apiGroup="r", resource="roles", name="c"), set()),
    ],
)
def test_which_rights_a_request_took(line: str, wanted: set[tuple[str, ...]]) -> None:
    found = audit.used(_GRANTS, audit.needed(audit.answered_requests([line]), "ours"))
    assert {(one.verb, one.resource, one.place, one.name) for one in found} == wanted
    assert found <= audit.rights(_GRANTS)


def test_who_makes_roles_needs_what_is_in_them_and_who_makes_bindings_may_bind() -> None:
    role = {
        "metadata": {"namespace": "ours"},
        "rules": [{"apiGroups": ["r"], "resources": ["x"], "verbs": ["get", "update"]}],
    }
    binding = {"metadata": {}, "roleRef": {"apiGroup": "r", "kind": "ClusterRole", "name": "a"}}
    assert {*audit.granted([role, binding], "ours")} == {
        ApiRequest("get", "r", "x", "own"),
        ApiRequest("update", "r", "x", "own"),
        ApiRequest("bind", "r", "clusterroles", "cluster", "a"),
    }

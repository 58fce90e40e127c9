"""What errors say."""

import json

import pytest

from fairlead.cluster.errors import (
    ConflictError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    RequestError,
    refusal,
)
from fairlead.cluster.resources import PODS, Resource, Where

BINDING = PODS.of("default", "web-1", "binding")
LEASES = Where(Resource("coordination.k8s.io", "v1", "leases"))


def status(reason: str, message: str) -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message}).encode()


RBAC = 'User "u" cannot create resource "pods/binding" in API group "" in the namespace "default"'
EVERYWHERE = 'User "u" cannot list resource "leases" in API group "coordination.k8s.io" at the cluster scope'
CASES: dict[str, tuple[Where, int, bytes, type[RequestError], str]] = {
    "what RBAC refuses in a namespace": (
        BINDING,
        403,
        status("Forbidden", RBAC),
        ForbiddenError,
        (
            f"create pods/binding default/web-1: 403 Forbidden: {RBAC}; a Role in default or a ClusterRole of that "
            'user lacks the rule {apiGroups: [""], resources: [pods/binding], verbs: [create]}'
        ),
    ),
    "what RBAC refuses everywhere": (
        LEASES,
        403,
        status("Forbidden", EVERYWHERE),
        ForbiddenError,
        (
            f"create leases.coordination.k8s.io: 403 Forbidden: {EVERYWHERE}; a ClusterRole of that user lacks the "
            'rule {apiGroups: ["coordination.k8s.io"], resources: [leases], verbs: [list]}'
        ),
    ),
    "what a quota refuses": (
        PODS.of("a", ""),
        403,
        status("Forbidden", "exceeded quota: q"),
        ForbiddenError,
        "create pods a: 403 Forbidden: exceeded quota: q",
    ),
    "what is not there": (
        PODS.of("a", "b"),
        404,
        status("NotFound", 'pods "b" not found'),
        NotFoundError,
        'create pods a/b: 404 NotFound: pods "b" not found',
    ),
    "another was faster": (BINDING, 409, status("Conflict", "x"), ConflictError, "Conflict: x"),
    "too old": (PODS, 410, status("Expired", "x"), GoneError, "create pods: 410 Expired: x"),
    "what a proxy says": (
        PODS,
        502,
        b"<html>Bad",
        RequestError,
        "create pods: 502: <html>Bad",
    ),
    "nothing": (PODS, 500, b"", RequestError, "nothing was said"),
    "bytes": (PODS, 500, b"\xff\xfe", RequestError, "create pods: 500"),
    "a list": (PODS, 500, b"[1]", RequestError, "[1]"),
}


@pytest.mark.parametrize(("where", "code", "body", "kind", "text"), CASES.values(), ids=CASES)
def test_an_answer_becomes_an_error(where: Where, code: int, body: bytes, kind: type[RequestError], text: str) -> None:
    error = refusal("create", where, code, body)
    assert type(error) is kind
    assert text in str(error)
    assert error.status == code


def test_what_is_there_already_is_told_from_what_was_changed() -> None:
    errors = [refusal("create", PODS, 409, status(reason, "")) for reason in ("AlreadyExists", "Conflict")]
    assert [error.exists for error in errors if isinstance(error, ConflictError)] == [True, False]


PATHS = {
    "/api/v1/pods": PODS,
    "/api/v1/namespaces/default/pods/web-1/binding": BINDING,
    "/apis/coordination.k8s.io/v1/leases": LEASES,
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode%2F%3F": Where(
        Resource("rbac.authorization.k8s.io", "v1", "clusterroles"), name="system:node/?"
    ),
}


@pytest.mark.parametrize(("path", "where"), PATHS.items())
def test_a_path_is(path: str, where: Where) -> None:
    assert where.path == path

"""What errors say."""

import json

import pytest

from fairlead.kube.errors import (
    ConflictError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    RequestError,
    may_not_bind,
    refusal,
)
from fairlead.kube.resources import PODS, ObjectRef, Resource

BINDING = PODS.named("default", "web-1", "binding")
LEASES = ObjectRef(Resource("coordination.k8s.io", "v1", "leases"))


def status(reason: str, message: str) -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message}).encode()


RBAC = 'User "u" cannot create resource "pods/binding" in API group "" in the namespace "default"'
EVERYWHERE = 'User "u" cannot list resource "leases" in API group "coordination.k8s.io" at the cluster scope'
GRANT = 'roles "r" is forbidden: user "u" is attempting to grant RBAC permissions not currently held:\n'
HELD = (
    '{APIGroups:["coordination.k8s.io"], Resources:["leases"], ResourceNames:["r"], Verbs:["get" "update"]}\n'
    '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'
)
CASES: dict[str, tuple[ObjectRef, int, bytes, type[RequestError], str]] = {
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
    "what nobody grants who has it not": (
        ObjectRef(Resource("rbac.authorization.k8s.io", "v1", "roles"), "ours", "r"),
        403,
        status("Forbidden", GRANT + HELD),
        ForbiddenError,
        (
            f"{HELD}; a Role in ours or a ClusterRole of that user lacks the rule "
            '{apiGroups: ["coordination.k8s.io"], resources: [leases], verbs: [get, update]}'
        ),
    ),
    "what a quota refuses": (
        PODS.named("a", ""),
        403,
        status("Forbidden", "exceeded quota: q"),
        ForbiddenError,
        "create pods a: 403 Forbidden: exceeded quota: q",
    ),
    "what is not there": (
        PODS.named("a", "b"),
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
    "nothing": (PODS, 500, b"", RequestError, "no message"),
    "bytes": (PODS, 500, b"\xff\xfe", RequestError, "create pods: 500"),
    "a list": (PODS, 500, b"[1]", RequestError, "[1]"),
}


@pytest.mark.parametrize(("where", "code", "body", "kind", "text"), CASES.values(), ids=CASES)
def test_an_answer_becomes_an_error(
    where: ObjectRef, code: int, body: bytes, kind: type[RequestError], text: str
) -> None:
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
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode%2F%3F": ObjectRef(
        Resource("rbac.authorization.k8s.io", "v1", "clusterroles"), name="system:node/?"
    ),
}


@pytest.mark.parametrize(("path", "where"), PATHS.items())
def test_a_path_is(path: str, where: ObjectRef) -> None:
    assert where.path == path


BINDINGS = ObjectRef(Resource("rbac.authorization.k8s.io", "v1", "rolebindings"), "kube-system", "b")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (
            GRANT + HELD,
            (
                f"apply {BINDINGS}: 403 Forbidden: {GRANT.rstrip()[:-1]}; a Role in kube-system or a ClusterRole of "
                'that user lacks the rule {apiGroups: ["rbac.authorization.k8s.io"], resources: [roles], '
                "resourceNames: [reader], verbs: [bind]}"
            ),
        ),
        ("exceeded quota: q", f"apply {BINDINGS}: 403 Forbidden: exceeded quota: q"),
    ],
)
def test_who_may_not_bind_is_told_to_which_role_and_not_what_is_in_it(said: str, text: str) -> None:
    error = refusal("apply", BINDINGS, 403, status("Forbidden", said))
    assert isinstance(error, ForbiddenError)
    assert str(may_not_bind(error, "Role", "reader")) == text


@pytest.mark.parametrize(("said", "is_it"), [(RBAC, True), (GRANT + HELD, True), ("exceeded quota: q", False)])
def test_what_rbac_refuses_is_told_from_what_others_do(said: str, *, is_it: bool) -> None:
    error = refusal("create", BINDING, 403, status("Forbidden", said))
    assert isinstance(error, ForbiddenError)
    assert error.is_of_rbac is is_it

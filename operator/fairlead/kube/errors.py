"""Errors of requests to the API server, by what can be done about them.

ClusterError
├── AccessError            the API server's address or our credentials cannot be found: file, field and hint
└── RequestError           a request that failed: verb, object, status, reason, message
    ├── UnreachableError   no reply, or an incomplete one
    ├── NotLeadingError    a write that was not sent, because only the leader may send it
    ├── ForbiddenError     403; names the missing RBAC rule
    ├── NotFoundError      404
    ├── ConflictError      409: another client was faster, or the object exists already
    └── GoneError          410: the resource version, or the position in a list, has expired
"""

import re
from typing import Final

import msgspec

from fairlead.kube.resources import ObjectRef

ERROR_BYTES_MAX: Final = 64 << 10
_TEXT_MAX: Final = 500


class ClusterError(Exception):
    """Base class of all errors here."""


class AccessError(ClusterError):
    """Address or credentials that cannot be found or used."""

    def __init__(self, file: str, field: str, what: str, hint: str) -> None:
        self.file, self.field, self.what, self.hint = file, field, what, hint
        super().__init__(f"{': '.join(part for part in (file, field, what) if part)}; {hint}")


class RequestError(ClusterError):
    """Request that failed."""

    def __init__(
        self,
        verb: str,
        where: ObjectRef,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        self.verb, self.where, self.message = verb, where, message
        self.status, self.reason, self.retry_after_s = status, reason, retry_after_s
        answer = " ".join(part for part in (str(status or ""), reason) if part)
        super().__init__(": ".join(part for part in (f"{verb} {where}", answer, message) if part))

    @property
    def is_invalid(self) -> bool:
        """Return whether the request itself is invalid, so that a retry would fail again."""
        return self.status in _INVALID or any(one in self.message for one in _UNTYPED)


class UnreachableError(RequestError):
    """No reply, or an incomplete one. The request may have been carried out, unless `not_sent`."""

    def __init__(self, verb: str, where: ObjectRef, message: str, *, not_sent: bool = False) -> None:
        self.not_sent = not_sent
        super().__init__(verb, where, message)


class UntrustedServerError(UnreachableError):
    """Certificate of the server that is not trusted: nothing was sent."""

    def __init__(self, verb: str, where: ObjectRef, message: str) -> None:
        super().__init__(verb, where, message, not_sent=True)


class NotLeadingError(RequestError):
    """Write that only the leader may send, refused because this replica no longer leads."""


class ForbiddenError(RequestError):
    """Status 403."""

    @property
    def is_of_rbac(self) -> bool:
        """Return whether an RBAC rule is missing; others, such as quotas, also answer 403."""
        return _LACKS in self.message


class NotFoundError(RequestError):
    """Status 404."""


class ConflictError(RequestError):
    """Status 409."""

    @property
    def exists(self) -> bool:
        """Return whether an object that should be new exists already."""
        return self.reason == "AlreadyExists"


class GoneError(RequestError):
    """Status 410."""


class ApiStatus(msgspec.Struct, frozen=True):
    """Error object of the API server."""

    code: int = 0
    reason: str = ""
    message: str = ""


_CLASSES: Final[dict[int, type[RequestError]]] = {
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
}
_INVALID: Final = (400, 422)
_UNTYPED: Final = ("failed to create typed patch object", "failed to convert new object")
"""Unknown fields and unreadable values: the API server answers 500, as if the fault were its own."""
_LACKS: Final = "of that user lacks the rule"
_NOT_HELD: Final = "attempting to grant RBAC permissions not currently held"
_HELD: Final = re.compile(r"\{APIGroups:\[([^][{}]*+)\], Resources:\[([^][{}]*+)\],[^{}]*? Verbs:\[([^][{}]*+)\]\}")
_RULE: Final = re.compile(r'cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?')
_status: Final = msgspec.json.Decoder(ApiStatus)


def refusal(verb: str, where: ObjectRef, status: int, body: bytes, *, retry_after: str | None = None) -> RequestError:
    """Return the error for a reply."""
    found = status_of(body)
    message = found.message or body[:_TEXT_MAX].decode(errors="replace").strip() or "no message"
    if status == 403:
        message += missing_rule(message, where.namespace)
    after = float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
    kind = _CLASSES.get(status, RequestError)
    return kind(verb, where, message, status=status, reason=found.reason, retry_after_s=after)


def status_of(body: bytes | msgspec.Raw) -> ApiStatus:
    """Return the Status object in a body; an empty one if it contains none."""
    try:
        return _status.decode(body)
    except msgspec.DecodeError:
        return ApiStatus()


def missing_rule(message: str, namespace: str = "") -> str:
    """Return the RBAC rule to add, as text for the message; "" if the message is not RBAC's."""
    if found := _RULE.search(message):
        verb, resource, group, within = found.groups()
        return _lacks(group, resource, verb, within or "")
    if _NOT_HELD in message and (granted := _HELD.search(message)):
        group, resource, verbs = granted.groups()
        return _lacks(group.strip('"'), resource.strip('"'), verbs.replace('"', "").replace(" ", ", "), namespace)
    return ""


def may_not_bind(error: ForbiddenError, kind: str, role: str) -> ForbiddenError:
    """Return the error with a shorter rule to add: the API server lists every rule of the role to be bound."""
    before, refused, _ = error.message.partition(_NOT_HELD)
    if not refused:
        return error
    rule = _lacks("rbac.authorization.k8s.io", f"{kind.lower()}s", "bind", error.where.namespace, role)
    return ForbiddenError(error.verb, error.where, before + refused + rule, status=error.status, reason=error.reason)


def _lacks(group: str, resource: str, verbs: str, namespace: str, name: str = "") -> str:
    where = f"a Role in {namespace} or a ClusterRole" if namespace else "a ClusterRole"
    only = f", resourceNames: [{name}]" if name else ""
    return f'; {where} {_LACKS} {{apiGroups: ["{group}"], resources: [{resource}]{only}, verbs: [{verbs}]}}'

"""What goes wrong between us and the API server, by what can be done about it.

ClusterError
├── AccessError            where it is or who asks cannot be told: a file, its field, and the cure
└── RequestError           a request that came to nothing: verb, what it was about, status, reason, message
    ├── UnreachableError   no answer, or half of one
    ├── NotLeadingError    a write that was not sent: only who leads may make it
    ├── ForbiddenError     403; says which rule of RBAC is missing
    ├── NotFoundError      404
    ├── ConflictError      409: somebody else was faster, or it is there already
    └── GoneError          410: the version, or the place in a list, is no longer known
"""

import re
from typing import Final

import msgspec

from fairlead.kube.resources import ObjectRef

ERROR_BYTES_MAX: Final = 64 << 10
_TEXT_MAX: Final = 500


class ClusterError(Exception):
    """Anything below."""


class AccessError(ClusterError):
    """Where the API server is, or who asks it, cannot be told."""

    def __init__(self, file: str, field: str, what: str, cure: str) -> None:
        self.file, self.field, self.what, self.cure = file, field, what, cure
        super().__init__(f"{': '.join(part for part in (file, field, what) if part)}; {cure}")


class RequestError(ClusterError):
    """A request that came to nothing."""

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
        """Whether what was sent is at fault: it would be refused again."""
        return self.status in _INVALID or any(one in self.message for one in _UNTYPED)


class UnreachableError(RequestError):
    """No answer, or half of one. What was asked for may have happened all the same, unless `not_sent`."""

    def __init__(self, verb: str, where: ObjectRef, message: str, *, not_sent: bool = False) -> None:
        self.not_sent = not_sent
        super().__init__(verb, where, message)


class NotLeadingError(RequestError):
    """A write that only a leader may make, and we lead no more: nothing was sent."""


class ForbiddenError(RequestError):
    """403."""

    @property
    def is_of_rbac(self) -> bool:
        """Whether a rule is missing, and named; others, such as quotas, refuse with 403 too."""
        return _LACKS in self.message


class NotFoundError(RequestError):
    """404."""


class ConflictError(RequestError):
    """409."""

    @property
    def exists(self) -> bool:
        """Whether it is about an object that should have been new."""
        return self.reason == "AlreadyExists"


class GoneError(RequestError):
    """410."""


class Status(msgspec.Struct, frozen=True):
    """How the API server says no."""

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
"""Fields that there are not, and values that cannot be read: the API server answers 500, as to a fault of its own."""
_LACKS: Final = "of that user lacks the rule"
_NOT_HELD: Final = "attempting to grant RBAC permissions not currently held"
_HELD: Final = re.compile(r"\{APIGroups:\[([^][{}]*+)\], Resources:\[([^][{}]*+)\],[^{}]*? Verbs:\[([^][{}]*+)\]\}")
_RULE: Final = re.compile(r'cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?')
_status: Final = msgspec.json.Decoder(Status)


def refusal(verb: str, where: ObjectRef, status: int, body: bytes, *, retry_after: str | None = None) -> RequestError:
    """The error that an answer stands for."""
    said = status_of(body)
    message = said.message or body[:_TEXT_MAX].decode(errors="replace").strip() or "nothing was said"
    if status == 403:
        message += missing_rule(message, where.namespace)
    after = float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
    kind = _CLASSES.get(status, RequestError)
    return kind(verb, where, message, status=status, reason=said.reason, retry_after_s=after)


def status_of(body: bytes | msgspec.Raw) -> Status:
    """The Status object in a body; an empty one where there is none."""
    try:
        return _status.decode(body)
    except msgspec.DecodeError:
        return Status()


def missing_rule(message: str, namespace: str = "") -> str:
    """What to add to a role, where the message is RBAC's."""
    if found := _RULE.search(message):
        verb, resource, group, within = found.groups()
        return _lacks(group, resource, verb, within or "")
    if _NOT_HELD in message and (held := _HELD.search(message)):
        group, resource, verbs = held.groups()
        return _lacks(group.strip('"'), resource.strip('"'), verbs.replace('"', "").replace(" ", ", "), namespace)
    return ""


def may_not_bind(error: ForbiddenError, kind: str, role: str) -> ForbiddenError:
    """What to add to a role where a binding was refused: the API server names all that is in the role to be bound."""
    before, refused, _ = error.message.partition(_NOT_HELD)
    if not refused:
        return error
    rule = _lacks("rbac.authorization.k8s.io", f"{kind.lower()}s", "bind", error.where.namespace, role)
    return ForbiddenError(error.verb, error.where, before + refused + rule, status=error.status, reason=error.reason)


def _lacks(group: str, resource: str, verbs: str, namespace: str, name: str = "") -> str:
    where = f"a Role in {namespace} or a ClusterRole" if namespace else "a ClusterRole"
    only = f", resourceNames: [{name}]" if name else ""
    return f'; {where} {_LACKS} {{apiGroups: ["{group}"], resources: [{resource}]{only}, verbs: [{verbs}]}}'

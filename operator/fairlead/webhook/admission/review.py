"""Answer to an admission review of a policy: what `fairlead lint` says about it. Pure.

Errors deny the policy; warnings are shown and deny nothing. A change outside the spec is always allowed: finalizers
must be removable whatever is wrong with the policy. So is an edit that turns a policy off: its errors are warnings.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from fairlead.api.errors import render_path
from fairlead.api.mode import Mode, mode_of
from fairlead.api.names import GROUP, KIND
from fairlead.api.parse import show_value
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cooperative import Steps, drop_references, finish
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.lint.acceptances import ACCEPT, ACROSS_POLICIES, LENGTH_MAX
from fairlead.policy.lint.codes import LintCode, LintWarning
from fairlead.policy.lint.inspection import Inspected, inspect_steps
from fairlead.policy.lint.policy_checks import warnings_steps
from fairlead.policy.lint.policy_set_checks import conflicts_with
from fairlead.webhook.admission.received import ReceivedReviews

PIECE: Final = 120
PIECES: Final = 8
"""Warnings per answer: the API server truncates each, and all of them."""
MESSAGE_MAX: Final = 8192
_INVALID: Final = 422
_TURNED_OFF: Final[Mapping[Mode | None, str]] = {
    "Shadow": "the policy is in shadow now, and does not compile:",
    "Disabled": "the policy is disabled now, and does not compile:",
}
"""Warning about a policy that does not compile and is stored, because none of its rules decides any more."""


class NoReviewError(ValueError):
    """Body that is not an AdmissionReview of a policy."""


class _Kind(msgspec.Struct, frozen=True):
    group: str = ""
    kind: str = ""


_Part = msgspec.Raw
_NOTHING: Final = msgspec.Raw(b"null")


class _Annotations(msgspec.Struct, frozen=True):
    accept: _Part = msgspec.field(default=_NOTHING, name=ACCEPT)


class _Metadata(msgspec.Struct, frozen=True):
    annotations: _Annotations | None = None
    name: _Part = _NOTHING
    uid: _Part = _NOTHING
    generation: _Part = _NOTHING
    namespace: _Part = _NOTHING


class _Object(msgspec.Struct, frozen=True):
    """Fields of an object that a review reads; others are not decoded."""

    apiVersion: _Part = _NOTHING  # noqa: N815 - as in the API
    kind: _Part = _NOTHING
    metadata: _Metadata = _Metadata()
    spec: _Part = _NOTHING


class _Request(msgspec.Struct, frozen=True):
    uid: Annotated[str, msgspec.Meta(max_length=253)]
    kind: _Kind = _Kind()
    operation: str = ""
    dryRun: bool | None = None  # noqa: N815
    object: _Part = _NOTHING
    oldObject: _Part = _NOTHING  # noqa: N815


class _Review(msgspec.Struct, frozen=True):
    request: _Request
    apiVersion: str = ""  # noqa: N815


_decode: Final = msgspec.json.Decoder(_Review).decode
_object_of: Final = msgspec.json.Decoder(_Object | None).decode
SPEC_MAX: Final = 1 << 20
VALUES_MAX: Final = 10_000
"""Values in a spec: many times as many as any policy has, and fast to decode."""
_SMALL: Final = 1024


def review(
    body: bytes,
    model: type[SchedulerExtenderPolicy],
    rules: CompileOptions,
    serving: Sequence[CompiledPolicy] = (),
) -> bytes:
    """Return the answer without pausing. Raises NoReviewError."""
    return finish(review_steps(body, model, rules, serving))


def review_steps(
    body: bytes,
    model: type[SchedulerExtenderPolicy],
    rules: CompileOptions,
    serving: Sequence[CompiledPolicy] = (),
    received: ReceivedReviews | None = None,
) -> Steps[bytes]:
    """Return the answer, pausing so that others are served meanwhile; `serving` are the policies that serve.

    The review is recorded in `received`, whatever its answer. Raises NoReviewError.
    """
    try:
        request = _decode(body).request
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NoReviewError(f"not an AdmissionReview: {error}") from None
    if (request.kind.group, request.kind.kind) != (GROUP, KIND) or request.operation not in ("CREATE", "UPDATE"):
        return _answer(request.uid)
    yield
    before = _read(request.oldObject)
    yield
    after = _read(request.object)
    if after is None:
        after = _Object()
    if received is not None:
        generation = _small(after.metadata.generation)
        # what a dry run changes is not stored, and another change gets its number
        if not request.dryRun or (before is not None and _small(before.metadata.generation) == generation):
            received.record(_small(after.metadata.uid), generation)
    if request.operation == "UPDATE" and before is not None and _written(before) == _written(after):
        return _answer(request.uid)
    yield
    if _is_excessive(after.spec):
        text = f"is too large: {SPEC_MAX >> 20} MiB and {VALUES_MAX:,} values are allowed"
        return _answer(request.uid, f"spec: {text}; split it into several policies")
    yield
    try:
        plain = _plain(after)
    except (msgspec.MsgspecError, RecursionError):
        return _answer(request.uid, "spec: is nested too deeply")
    yield
    found = yield from inspect_steps(plain, model, rules, warnings_steps)
    yield
    if found.faults and (mode := mode_of(plain)) in _TURNED_OFF and before is not None and _enforces(before):
        pieces = [piece for fault in found.faults for piece in textwrap.wrap(str(fault), PIECE)]
        answer = _answer(request.uid, warnings=_limited([_TURNED_OFF[mode], *pieces]))
    else:
        across = (yield from _across(found, serving)) if found.compiled is not None else []
        answer = _answer(request.uid, _message(found), _limited([*_warnings(found.warnings), *across]))
    expressions = found.compiled.expressions if found.compiled is not None else []
    del found
    yield from drop_references(expressions)
    return answer


def _read(part: _Part) -> _Object | None:
    """Return the fields that a review reads; None if it is not an object."""
    try:
        found: _Object | None = _object_of(part)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found


def _written(obj: _Object) -> tuple[bytes, bytes]:
    """Return the bytes of the spec; the API server encodes equal specs equally."""
    return bytes(obj.apiVersion), bytes(obj.spec)


def _is_excessive(spec: _Part) -> bool:
    """Return whether the spec is far larger than any policy, without decoding it."""
    if len(bytes(spec)) > SPEC_MAX:
        return True
    left = bytes(spec).replace(b"\\\\", b"").replace(b'\\"', b"")
    if left.count(b'"') > 4 * VALUES_MAX:  # a key and a text for each value
        return True
    bare = b"".join(left.split(b'"')[::2])  # outside of strings
    return sum(bare.count(sign) for sign in (b",", b"[", b"{")) > VALUES_MAX


def _plain(obj: _Object) -> dict[str, Any]:
    """Return the object as a document, without the fields that no check reads."""
    metadata = {name: _small(getattr(obj.metadata, name)) for name in ("name", "uid", "generation", "namespace")}
    header = {"apiVersion": _small(obj.apiVersion), "kind": _small(obj.kind)}
    whole = {**header, "spec": msgspec.json.decode(obj.spec)}
    kept = {key: value for key, value in metadata.items() if value is not None}
    if obj.metadata.annotations is not None:
        kept["annotations"] = {ACCEPT: _small(obj.metadata.annotations.accept, 2 * LENGTH_MAX)}
    return {**{key: value for key, value in whole.items() if value is not None}, "metadata": kept}


def _small(part: _Part, most: int = _SMALL) -> Any:
    return msgspec.json.decode(part) if len(bytes(part)) <= most else "..."


def _enforces(obj: _Object) -> bool:
    """Return whether the mode of an object as it was before is one under which its rules decide."""
    try:
        return mode_of({"spec": msgspec.json.decode(obj.spec)}) not in _TURNED_OFF
    except (msgspec.MsgspecError, RecursionError):
        return True


def _message(inspected: Inspected) -> str:
    text = "\n".join(map(str, inspected.faults))
    return text if len(text) <= MESSAGE_MAX else f"{text[:MESSAGE_MAX]}...\nrun fairlead lint for the rest"


def _warnings(warnings: Iterable[LintWarning]) -> list[str]:
    """Return the warnings in pieces that the API server does not truncate."""
    return [piece for one in warnings if one.severity == "warning" for piece in _pieces(one)]


def _across(inspected: Inspected, serving: Sequence[CompiledPolicy]) -> Steps[list[str]]:
    """Return the warnings of lint about the policy and those that serve, as many as are shown."""
    new, pieces = inspected.compiled, list[str]()
    accepted = [each for each in inspected.acceptances if each.reason in ACROSS_POLICIES]
    if new is None:
        return pieces
    for one in conflicts_with(new, serving):
        if one is None:
            yield
            continue
        if one.loser is new and any(each.covers(LintCode.CONFLICT, one.rule) for each in accepted):
            continue
        of = "" if one.loser is new else f"policy {show_value(one.loser.name)}: "
        winner = show_value(one.winner.name)
        pieces += textwrap.wrap(f"{of}{render_path(one.path)}: {winner} {one.message}; {one.hint}", PIECE)
        if len(pieces) > PIECES:
            break
    return pieces


def _limited(pieces: list[str]) -> list[str]:
    if len(pieces) <= PIECES:
        return pieces
    return [*pieces[: PIECES - 1], "there are more: run fairlead lint"]


def _pieces(warning: LintWarning) -> Iterator[str]:
    text = f"{render_path(warning.path)}: {warning.message}" + (f"; {warning.hint}" if warning.hint else "")
    yield from textwrap.wrap(text, PIECE)


def _answer(uid: str, message: str = "", warnings: Iterable[str] = ()) -> bytes:
    response: dict[str, Any] = {"uid": uid, "allowed": not message}
    if message:
        response["status"] = {"code": _INVALID, "reason": "Invalid", "message": message}
    if shown := [*warnings]:
        response["warnings"] = shown
    answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return msgspec.json.encode(answer)

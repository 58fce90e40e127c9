"""What the API server is told about a policy that somebody applies: what `fairlead lint` says of it. Pure.

It answers with the verdict and nothing else. Faults deny; warnings are shown and hold nobody up. Whoever changes
anything but the spec is let through: finalizers must come off whatever is wrong with it.
"""

import textwrap
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Annotated, Any, Final

import msgspec

from fairlead.api.errors import render_path
from fairlead.api.names import GROUP, KIND
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cel.check import Steps, finish
from fairlead.policy.compile import Rules
from fairlead.policy.inspect import Inspected, inspect_steps
from fairlead.policy.warnings import PolicyWarning

PIECE: Final = 120
PIECES: Final = 8
"""Of warnings: the API server cuts each, and all of them."""
MESSAGE_MAX: Final = 8192
DEPTH: Final = 64
"""Of lists and objects: no policy has half of it."""
MARKS: Final = 40_000
"""Brackets and commas of a body outside of texts: by them goes the time that decoding takes, and the memory."""
QUOTES: Final = 100_000
"""With backslashes: by them goes the time of finding that out."""
_INVALID: Final = 422
_NO_MARKS: Final = bytes(code for code in range(256) if code not in b"[]{},")


class NoReviewError(ValueError):
    """The body is no question about one of our objects."""


class _Kind(msgspec.Struct, frozen=True):
    group: str = ""
    kind: str = ""


class _Request(msgspec.Struct, frozen=True):
    uid: Annotated[str, msgspec.Meta(max_length=253)]
    kind: _Kind = _Kind()
    operation: str = ""
    object: Any = None
    oldObject: Any = None  # noqa: N815 - as in the API


class _Review(msgspec.Struct, frozen=True):
    request: _Request
    apiVersion: str = ""  # noqa: N815


_decode: Final = msgspec.json.Decoder(_Review).decode


def review(body: bytes, model: type[SchedulerExtenderPolicy], rules: Rules) -> bytes:
    """The answer, at one stretch. Raises NoReviewError."""
    return finish(review_steps(body, model, rules))


def review_steps(body: bytes, model: type[SchedulerExtenderPolicy], rules: Rules) -> Steps[bytes]:
    """The same, pausing so that others are served meanwhile."""
    _look_over(body)
    yield
    try:
        asked = _decode(body).request
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NoReviewError(f"this is no AdmissionReview: {error}") from None
    if (asked.kind.group, asked.kind.kind) != (GROUP, KIND) or _is_untouched(asked):
        return _answer(asked.uid)
    yield
    found = yield from inspect_steps(asked.object, model, rules)
    return _answer(asked.uid, _why(found), _warned(found.warnings))


def _look_over(body: bytes) -> None:
    """Refuse what would take long to decode, or could not be walked afterwards. Raises NoReviewError."""
    if body.count(b'"') + body.count(b"\\") > QUOTES:
        raise NoReviewError(f"more than {QUOTES} quotes and backslashes are not looked at")
    outside = b"".join(body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    marks = outside.translate(None, _NO_MARKS)
    if len(marks) > MARKS:
        raise NoReviewError(f"more than {MARKS} brackets and commas are not looked at")
    brackets = marks.translate(None, b",")
    if max(accumulate(1 if one in b"[{" else -1 for one in brackets), default=0) > DEPTH:
        raise NoReviewError(f"what is nested more than {DEPTH} deep is not looked at")


def _is_untouched(asked: _Request) -> bool:
    if asked.operation not in ("CREATE", "UPDATE"):
        return True
    before, after = asked.oldObject, asked.object
    if asked.operation != "UPDATE" or not isinstance(before, dict) or not isinstance(after, dict):
        return False
    return all(before.get(part) == after.get(part) for part in ("apiVersion", "spec"))


def _why(found: Inspected) -> str:
    said = "\n".join(map(str, found.faults))
    return said if len(said) <= MESSAGE_MAX else f"{said[:MESSAGE_MAX]}...\nfairlead lint says the rest"


def _warned(warnings: Iterable[PolicyWarning]) -> list[str]:
    """Each in pieces that are not cut."""
    pieces = [piece for one in warnings if one.severity == "warning" for piece in _pieces(one)]
    if len(pieces) <= PIECES:
        return pieces
    return [*pieces[: PIECES - 1], "there are more: ask fairlead lint"]


def _pieces(one: PolicyWarning) -> Iterator[str]:
    said = f"{render_path(one.path)}: {one.message}" + (f"; {one.hint}" if one.hint else "")
    yield from textwrap.wrap(said, PIECE)


def _answer(uid: str, why: str = "", warnings: Iterable[str] = ()) -> bytes:
    response: dict[str, Any] = {"uid": uid, "allowed": not why}
    if why:
        response["status"] = {"code": _INVALID, "reason": "Invalid", "message": why}
    if said := [*warnings]:
        response["warnings"] = said
    answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return msgspec.json.encode(answer)

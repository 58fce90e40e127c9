"""What the API server is told about a policy that somebody applies: what `fairlead lint` says of it. Pure.

It answers with the verdict and nothing else. Faults deny; warnings are shown and hold nobody up. Whoever changes
anything but the spec is let through: finalizers must come off whatever is wrong with it.
"""

import textwrap
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

import msgspec

from fairlead.api.errors import render_path
from fairlead.api.names import GROUP, KIND
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cooperative import Steps, finish, released
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.lint.codes import LintWarning
from fairlead.policy.lint.inspection import Inspected, inspect_steps

PIECE: Final = 120
PIECES: Final = 8
"""Of warnings: the API server cuts each, and all of them."""
MESSAGE_MAX: Final = 8192
_INVALID: Final = 422


class NoReviewError(ValueError):
    """The body is no question about one of our objects."""


class _Kind(msgspec.Struct, frozen=True):
    group: str = ""
    kind: str = ""


_Part = msgspec.Raw
_NOTHING: Final = msgspec.Raw(b"null")


class _Metadata(msgspec.Struct, frozen=True):
    name: _Part = _NOTHING
    uid: _Part = _NOTHING
    generation: _Part = _NOTHING
    namespace: _Part = _NOTHING


class _Object(msgspec.Struct, frozen=True):
    """What is looked at of an object; the rest is passed over, and nothing is made of it."""

    apiVersion: _Part = _NOTHING  # noqa: N815 - as in the API
    kind: _Part = _NOTHING
    metadata: _Metadata = _Metadata()
    spec: _Part = _NOTHING


class _Request(msgspec.Struct, frozen=True):
    uid: Annotated[str, msgspec.Meta(max_length=253)]
    kind: _Kind = _Kind()
    operation: str = ""
    object: _Part = _NOTHING
    oldObject: _Part = _NOTHING  # noqa: N815


class _Review(msgspec.Struct, frozen=True):
    request: _Request
    apiVersion: str = ""  # noqa: N815


_decode: Final = msgspec.json.Decoder(_Review).decode
_object_of: Final = msgspec.json.Decoder(_Object | None).decode
SPEC_MAX: Final = 1 << 20
VALUES_MAX: Final = 10_000
"""Of a spec: many times what any policy has, and little to decode."""
_SMALL: Final = 1024


def review(body: bytes, model: type[SchedulerExtenderPolicy], rules: CompileOptions) -> bytes:
    """The answer, at one stretch. Raises NoReviewError."""
    return finish(review_steps(body, model, rules))


def review_steps(body: bytes, model: type[SchedulerExtenderPolicy], rules: CompileOptions) -> Steps[bytes]:
    """The same, pausing so that others are served meanwhile."""
    try:
        asked = _decode(body).request
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NoReviewError(f"this is no AdmissionReview: {error}") from None
    if (asked.kind.group, asked.kind.kind) != (GROUP, KIND) or asked.operation not in ("CREATE", "UPDATE"):
        return _answer(asked.uid)
    yield
    before = _read(asked.oldObject)
    yield
    after = _read(asked.object)
    if after is None:
        after = _Object()
    if asked.operation == "UPDATE" and before is not None and _written(before) == _written(after):
        return _answer(asked.uid)
    yield
    if _is_excessive(after.spec):
        said = f"is too large: {SPEC_MAX >> 20} MiB and {VALUES_MAX:,} values are allowed"
        return _answer(asked.uid, f"spec: {said}; split it into several policies")
    yield
    try:
        plain = _plain(after)
    except (msgspec.MsgspecError, RecursionError):
        return _answer(asked.uid, "spec: is nested too deep; no policy is")
    yield
    found = yield from inspect_steps(plain, model, rules)
    yield
    answer = _answer(asked.uid, _why(found), _warned(found.warnings))
    made = found.compiled.expressions if found.compiled is not None else []
    del found
    yield from released(made)
    return answer


def _read(part: _Part) -> _Object | None:
    """What is looked at of an object; None: it is none."""
    try:
        found: _Object | None = _object_of(part)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found


def _written(found: _Object) -> tuple[bytes, bytes]:
    """As the API server writes it, which is the same each time."""
    return bytes(found.apiVersion), bytes(found.spec)


def _is_excessive(spec: _Part) -> bool:
    """Whether it is far beyond any policy, without making anything of it."""
    if len(bytes(spec)) > SPEC_MAX:
        return True
    left = bytes(spec).replace(b"\\\\", b"").replace(b'\\"', b"")
    if left.count(b'"') > 4 * VALUES_MAX:  # a key and a text for each value
        return True
    bare = b"".join(left.split(b'"')[::2])  # what stands in no text
    return sum(bare.count(sign) for sign in (b",", b"[", b"{")) > VALUES_MAX


def _plain(found: _Object) -> dict[str, Any]:
    """The object as a document, without what nobody reads."""
    metadata = {name: _small(getattr(found.metadata, name)) for name in ("name", "uid", "generation", "namespace")}
    header = {"apiVersion": _small(found.apiVersion), "kind": _small(found.kind)}
    whole = {**header, "spec": msgspec.json.decode(found.spec)}
    kept = {key: value for key, value in metadata.items() if value is not None}
    return {**{key: value for key, value in whole.items() if value is not None}, "metadata": kept}


def _small(part: _Part) -> Any:
    return msgspec.json.decode(part) if len(bytes(part)) <= _SMALL else "..."


def _why(found: Inspected) -> str:
    said = "\n".join(map(str, found.faults))
    return said if len(said) <= MESSAGE_MAX else f"{said[:MESSAGE_MAX]}...\nfairlead lint says the rest"


def _warned(warnings: Iterable[LintWarning]) -> list[str]:
    """Each in pieces that are not cut."""
    pieces = [piece for one in warnings if one.severity == "warning" for piece in _pieces(one)]
    if len(pieces) <= PIECES:
        return pieces
    return [*pieces[: PIECES - 1], "there are more: ask fairlead lint"]


def _pieces(one: LintWarning) -> Iterator[str]:
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

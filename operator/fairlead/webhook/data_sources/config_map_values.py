"""Documents with values of nodes, as they lie in ConfigMaps. Pure."""

from collections.abc import Collection, Iterable, Mapping
from math import isfinite, nan
from typing import Final, NamedTuple

import msgspec

from fairlead.cooperative import Steps
from fairlead.policy.nodes.annotated_values import moment
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import ConfigMapPoll, PollError, Reading, decode_fault

BYTES_MAX: Final = 1 << 20
VALUES_MAX: Final = 20_000
EXAMPLE: Final = '{"at": "2026-01-31T08:00:00Z", "values": {"node-1": 0.4}}'
_SLICE: Final = 500  # nodes between two pauses
_SHOWN_MAX: Final = 63
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)
_decode_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_numbers: Final = msgspec.json.Decoder(dict[str, float]).decode
_decode_time: Final = msgspec.json.Decoder(str).decode


class ValuesDocument(NamedTuple):
    """Values by the name of a node, or by the value of a label."""

    at: int | None
    """Time of all values; None if the document does not tell it."""
    values: Mapping[str, float]
    no_number: frozenset[str]
    """Keys whose value is no finite number."""


def read_document(text: str) -> ValuesDocument:
    """Read a document. Raises PollError."""
    if len(text.encode(errors="surrogatepass")) > BYTES_MAX:
        raise PollError("is larger than 1 MiB: leave out nodes that no longer exist, or look values up by keyLabel")
    found = read_values(text)
    count = len(found.values) + len(found.no_number)
    if count > VALUES_MAX:
        raise PollError(
            f"has {count} values, and at most {VALUES_MAX} are read:"
            " leave out nodes that no longer exist, or look values up by keyLabel"
        )
    return found


def read_values(text: str | bytes) -> ValuesDocument:
    """Read a document of any size. Raises PollError."""
    try:
        fields = _decode_fields(text)
    except _UNREADABLE as error:
        raise PollError(f"is not a JSON object ({decode_fault(error)}): write a document such as {EXAMPLE}") from None
    if unknown := sorted(fields.keys() - {"at", "values"}):
        raise PollError(f'has the unknown field "{_shown(unknown)}": write "at" and "values" only, as in {EXAMPLE}')
    if "values" not in fields:
        raise PollError(f'has no "values": write a document such as {EXAMPLE}')
    values, no_number = _values(fields["values"])
    return ValuesDocument(_time(fields.get("at")), values, no_number)


def document_reading(document: ValuesDocument, poll: ConfigMapPoll, nodes: Nodes) -> Steps[Reading]:
    """Give the values of a document to nodes: by name also to those that come later, by label to those that exist."""
    keys, label = document.values.keys() | document.no_number, poll.key_label
    if label is None:
        found = any(key in nodes.slots for key in keys)
        hint = "" if found else "is the name of a node; to look up a label of the nodes, give keyLabel"
        return Reading(document.values, document.at, no_number=document.no_number, note=_note(keys, nodes, hint))
    values: dict[str, float] = {}
    no_number: set[str] = set()
    for position, view in enumerate(nodes.views):
        if position % _SLICE == 0:
            yield
        if view is None or (key := view.labels.get(label)) is None:
            continue
        if (value := document.values.get(key)) is not None:
            values[view.name] = value
        elif key in document.no_number:
            no_number.add(view.name)
    hint = "" if values or no_number else f"is a value of the label; the nodes have: kubectl get nodes -L {label}"
    by_label = {**document.values, **dict.fromkeys(document.no_number, nan)}
    note = _note(keys, nodes, hint)
    return Reading(values, document.at, no_number=frozenset(no_number), note=note, by_label=by_label)


def _time(raw: msgspec.Raw | None) -> int | None:
    if raw is None:
        return None
    try:
        at = moment(_decode_time(raw))
    except _UNREADABLE:
        at = None
    if at is not None:
        return at
    raise PollError(f'has an unreadable "at": write the time of the values in RFC 3339, as in {EXAMPLE}')


def _values(raw: msgspec.Raw) -> tuple[Mapping[str, float], frozenset[str]]:
    """Read the values, and the keys of those that are no number."""
    try:
        return _decode_numbers(raw), frozenset()  # a quarter of the time
    except _UNREADABLE:
        pass
    try:
        numbers = {key: _number(one) for key, one in _decode_fields(raw).items()}
    except _UNREADABLE:
        raise PollError(f'"values" is not a map from names to numbers: write a document such as {EXAMPLE}') from None
    values = {key: number for key, number in numbers.items() if number is not None}
    return values, frozenset(numbers.keys() - values.keys())


def _number(raw: msgspec.Raw) -> float | None:
    """Read a number; JSON itself has neither NaN nor infinity, but numbers that are too large for a float."""
    try:
        number = float(raw)  # of the bytes, which are valid JSON
    except ValueError:
        return None
    return number if isfinite(number) else None


def _note(keys: Collection[str], nodes: Nodes, hint: str) -> str:
    if not hint or not nodes.slots:
        return ""
    if not keys:
        return "the document has no values"
    return f'no key of the document, such as "{_shown(keys)}", {hint}'


def _shown(keys: Iterable[str]) -> str:
    """Return the first key, so shortened that it fits into a message."""
    return min(keys)[:_SHOWN_MAX]

"""Measured values of `--data FILE`: what polls have read, by policy, entry and node."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, NoReturn

from fairlead.api.closest_name import closest_name
from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.files import files
from fairlead.plain_data import document
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.annotated_values import moment
from fairlead.policy.nodes.polls import Poll, Reading, poll_of

_BYTES_MAX: Final = 64 << 20
_VALUES_MAX: Final = 10_000_000
_SHOWN_MAX: Final = 3
_EXAMPLE: Final = '{"at": "2027-01-15T12:00:00Z", "values": {"node-1": 0.4}}'


@dataclass(slots=True)
class GivenData:
    """Values by poll, and notes on what they lack."""

    readings: dict[Poll, Reading] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def given_data(
    name: str | None,
    policies: Sequence[CompiledPolicy],
    nodes: Iterable[str],
    now: int,
    *,
    noted: Iterable[CompiledPolicy] | None = None,
) -> GivenData:
    """Return the values of a file; none without a file. Raises CommandError, which names the field.

    Only what values of these policies lack is `noted`; None: of all policies.
    """
    found = GivenData()
    polls = None if noted is None else {poll_of(entry) for policy in noted for entry in policy.data}
    if name is None:
        return found
    names, by_poll = dict.fromkeys(nodes), dict[Poll, dict[str, tuple[int, float, str]]]()
    for where, poll, at, values in _entries(name, policies, now):
        for node, value in values.items():
            before = by_poll.setdefault(poll, {}).get(node)
            if before is not None and before[0] == at and before[1] != value:
                _fail(f"{where}.values.{node}", f"differs from {before[2]}, which is the same measurement")
            if before is None or before[0] < at:
                by_poll[poll][node] = at, value, where
        by_poll.setdefault(poll, {})
        if polls is not None and poll not in polls:
            continue
        if without := [node for node in names if node not in values]:
            found.notes.append(f"{where} has no value for {_first(without)}")
        if strangers := [node for node in values if node not in names]:
            found.notes.append(f"{where} has values for {_first(strangers)}, and no node has such a name")
    for poll, of_nodes in by_poll.items():
        found.readings[poll] = Reading(
            {node: value for node, (_, value, _) in of_nodes.items()},
            {node: at for node, (at, _, _) in of_nodes.items()},
        )
    return found


def _entries(
    name: str, policies: Sequence[CompiledPolicy], now: int
) -> Iterator[tuple[str, Poll, int, Mapping[str, float]]]:
    known: dict[str, dict[str, Poll | None]] = {}
    for policy in policies:  # a comparison has two versions of each
        known.setdefault(policy.name, {}).update({entry.name: poll_of(entry) for entry in policy.data})
    for policy_name, entries in _map(_document(name), name, "write values by policy and entry").items():
        here = f"{name}: {policy_name}"
        if policy_name not in known:
            _fail(here, "there is no such policy", _meant(policy_name, known))
        for entry_name, written in _map(entries, here, "write values by the names of entries").items():
            where = f"{here}.{entry_name}"
            if entry_name not in known[policy_name]:
                _fail(where, "the policy has no such entry of data", _meant(entry_name, known[policy_name]))
            fields = _map(written, where, f"write {_EXAMPLE}")
            if unknown := sorted(fields.keys() - {"at", "values"}):
                _fail(f"{where}.{unknown[0]}", "there is no such field", f"write {_EXAMPLE}")
            if "values" not in fields:
                _fail(where, "has no values", f"write {_EXAMPLE}")
            values = _map(fields["values"], f"{where}.values", f"write {_EXAMPLE}")
            at = _time(fields["at"], f"{where}.at") if "at" in fields else now
            numbers = {node: _number(value, f"{where}.values.{node}") for node, value in values.items()}
            for policy in policies:
                for entry in policy.data if policy.name == policy_name else ():
                    if entry.name == entry_name:
                        if (poll := poll_of(entry)) is None:
                            _fail(where, "is read from the node itself", "write it into the snapshot")
                        yield where, poll, at, numbers


def _document(name: str) -> Any:
    [file] = files([name], _BYTES_MAX)
    if why := file.unreadable or file.empty or ("is too large" if file.too_large else ""):
        raise CommandError(f"{name}: {why}")
    try:
        return document(file.data, _VALUES_MAX)
    except ValueError as error:
        raise CommandError(f"{name}: this is neither JSON nor YAML: {error}") from None


def _map(value: object, where: str, hint: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        _fail(where, "is not a map from names", hint)
    return value


def _time(value: object, where: str) -> int:
    found = moment(value) if isinstance(value, str) else None
    if found is None:
        _fail(where, "is not a time", "write RFC 3339 in quotes, such as '2027-01-15T12:00:00Z'")
    return found


def _number(value: object, where: str) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return float(value)
    except OverflowError:
        pass
    return _fail(where, "is not a number", "write one such as 0.4, and leave out nodes without a value")


def _first(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _SHOWN_MAX} more" if len(nodes) > _SHOWN_MAX else ""
    return f"{', '.join(nodes[:_SHOWN_MAX])}{more}"


def _meant(name: str, names: Iterable[str]) -> str:
    near = closest_name(name, names := [*names])
    return f"did you mean {near}?" if near else f"there are {', '.join(names) or 'none'}"


def _fail(where: str, message: str, hint: str = "give both the same value") -> NoReturn:
    raise CommandError(f"{where}: {message}; {hint}")

"""Measured values of `--data FILE`: what polls have read, by policy, entry and node."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import msgspec

from fairlead.api.closest_name import closest_name
from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.files import files
from fairlead.plain_data import document
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.polls import Poll, PollError, Reading, poll_of
from fairlead.webhook.data_sources.config_map_values import EXAMPLE, ValuesDocument, read_values

_BYTES_MAX: Final = 64 << 20
_VALUES_MAX: Final = 10_000_000
_SHOWN_MAX: Final = 3


@dataclass(slots=True)
class MeasuredInput:
    """Values by poll, and notes on what they lack."""

    readings: dict[Poll, Reading] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FileValues:
    """Values that a file has for a poll."""

    where: str
    poll: Poll
    document: ValuesDocument


def file_values(names: Iterable[str], policies: Sequence[CompiledPolicy]) -> list[FileValues]:
    """Return the values of files. Raises CommandError, which names the field."""
    return [one for name in names for one in _file_values(name, policies)]


def read_data_file(
    values: Iterable[FileValues], nodes: Iterable[str], now: int, *, noted: Iterable[CompiledPolicy] | None = None
) -> MeasuredInput:
    """Return the values of files by their polls; those without a time are of now. Raises CommandError.

    Only what values of these policies lack is `noted`; None: of all policies.
    """
    found = MeasuredInput()
    polls = None if noted is None else {poll_of(entry) for policy in noted for entry in policy.data}
    names, by_poll = dict.fromkeys(nodes), dict[Poll, dict[str, tuple[int, float, str]]]()
    for one in values:
        where, poll = one.where, one.poll
        at = now if one.document.at is None else one.document.at
        for node, value in one.document.values.items():
            before = by_poll.setdefault(poll, {}).get(node)
            if before is not None and before[0] == at and before[1] != value:
                _fail(f"{where}.values.{node}", f"differs from {before[2]}, which is the same measurement")
            if before is None or before[0] < at:
                by_poll[poll][node] = at, value, where
        by_poll.setdefault(poll, {})
        if polls is not None and poll not in polls:
            continue
        if without := [node for node in names if node not in one.document.values]:
            found.notes.append(f"{where} has no value for {_first(without)}")
        if strangers := [node for node in one.document.values if node not in names]:
            found.notes.append(f"{where} has values for {_first(strangers)}, and no node has such a name")
    for poll, of_nodes in by_poll.items():
        found.readings[poll] = Reading(
            {node: value for node, (_, value, _) in of_nodes.items()},
            {node: at for node, (at, _, _) in of_nodes.items()},
        )
    return found


def _file_values(name: str, policies: Sequence[CompiledPolicy]) -> Iterator[FileValues]:
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
            document = _values(_map(written, where, f"write {EXAMPLE}"), where)
            for policy in policies:
                for entry in policy.data if policy.name == policy_name else ():
                    if entry.name == entry_name:
                        if (poll := poll_of(entry)) is None:
                            _fail(where, "is read from the node itself", "write it into the snapshot")
                        yield FileValues(where, poll, document)


def _values(written: Mapping[str, Any], where: str) -> ValuesDocument:
    _map(written.get("values", {}), f"{where}.values", f"write {EXAMPLE}")
    try:
        found = read_values(msgspec.json.encode(written))
    except (TypeError, ValueError, OverflowError) as error:
        raise CommandError(f"{where}: holds what JSON cannot: {error}") from None
    except PollError as error:
        raise CommandError(f"{where}: {error}") from None
    for node in sorted(found.no_number):
        _fail(f"{where}.values.{node}", "is not a number", "write one such as 0.4, and leave out nodes without a value")
    return found


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


def _first(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _SHOWN_MAX} more" if len(nodes) > _SHOWN_MAX else ""
    return f"{', '.join(nodes[:_SHOWN_MAX])}{more}"


def _meant(name: str, names: Iterable[str]) -> str:
    near = closest_name(name, names := [*names])
    return f"did you mean {near}?" if near else f"there are {', '.join(names) or 'none'}"


def _fail(where: str, message: str, hint: str = "give both the same value") -> NoReturn:
    raise CommandError(f"{where}: {message}; {hint}")

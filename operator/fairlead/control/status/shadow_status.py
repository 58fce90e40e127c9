"""Rules in shadow in the status of a policy: the counters that `shadow_counters` merges, and a warning; pure."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlead.api.mode import RULE_LISTS, mode_of
from fairlead.control.decide.shadow_counters import ALL, OF_RULES, SUMS, Counts, RuleKey, ShadowRecord, merged
from fairlead.replica_state import PolicyState, ReplicaState, ReplicaStates

Obj = Mapping[str, Any]
SIZE_MAX: Final = 8 << 10
"""Greatest size in JSON: what else does not fit is folded, and then rules are left out, the last ones first."""
_PROCESS: Final = 12
"""Digits of the name of a process, which are enough to tell processes apart."""
_NAMED: Final = 3
_FIELDS: Final[Mapping[str, str]] = {what: "tooSlow" if what == "too_slow" else what for what in SUMS}


def shadow_status(policy: Obj, states: ReplicaStates, now: str) -> dict[str, Any] | None:
    """Return what is counted of a policy's rules in shadow; None if none of them is."""
    if mode_of(policy) == "Disabled":
        return None
    before = decoded((policy.get("status") or {}).get("shadow"))
    answers = [one for one in states.values() if isinstance(one, ReplicaState)]
    found = [(one.process, state) for one in answers if (state := _state_of(policy, one)) is not None]
    reports = [(process[:_PROCESS], one.shadow) for process, one in found if one.shadow is not None]
    if not reports and _is_over(policy, before, [one for _, one in found]):
        return None
    record = merged(before, reports, _living(states), now, _fits)
    return None if record is None else encoded(record)


def shadow_warning(shadow: Obj | None) -> Iterator[dict[str, Any]]:
    """Yield the warning that pods would have had no node at all."""
    if not shadow or not (count := shadow["unschedulable"]):
        return
    names = [one["name"] for one in shadow.get("rules", ()) if one["unschedulable"]]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    alone = f"; one rule alone would do it: {', '.join(names[:_NAMED])}{more}" if names else ""
    yield {
        "reason": "ShadowUnschedulable",
        "count": count,
        "message": f"of {shadow['pods']} pods compared since {shadow['since']}, these would have had no node if its "
        f"rules in shadow were enforced{alone}",
    }


def without_counts(shadow: Obj | None) -> Obj | None:
    """Return the parts that change when another generation is counted."""
    return None if shadow is None else {"generation": shadow["generation"], "since": shadow["since"]}


def encoded(record: ShadowRecord) -> dict[str, Any]:
    """Return a record as the status has it."""
    sums = record.sums
    made: dict[str, Any] = {"generation": record.generation, "since": record.since}
    made |= {name: sums.get((ALL, what), 0) for what, name in _FIELDS.items()}
    if record.rules:
        made["rules"] = [_rule(rule, sums) for rule in record.rules]
    made["replicas"] = [
        {"process": process, "counts": _packed(record.rules, counts)} for process, counts in record.processes.items()
    ]
    if record.folded:
        made["earlier"] = {"processes": [*record.folded], "counts": _packed(record.rules, record.earlier)}
    return made


def decoded(shadow: Obj | None) -> ShadowRecord | None:
    """Return the record of a status; None if it has none."""
    if not shadow or "generation" not in shadow:
        return None
    rules = tuple([(one["kind"], one["name"]) for one in shadow.get("rules", ())])
    earlier = shadow.get("earlier") or {}
    return ShadowRecord(
        generation=shadow["generation"],
        since=shadow.get("since", ""),
        rules=rules,
        processes={one["process"]: _unpacked(rules, one.get("counts", "")) for one in shadow.get("replicas", ())},
        earlier=_unpacked(rules, earlier.get("counts", "")),
        folded=tuple(earlier.get("processes", ())),
    )


def _state_of(policy: Obj, state: ReplicaState) -> PolicyState | None:
    one = state.policies.get(policy["metadata"]["name"])
    return one if one is not None and one.uid == policy["metadata"]["uid"] else None


def _living(states: ReplicaStates) -> frozenset[str] | None:
    """Return the processes of all replicas; None if one is unknown, as it may be any of those that do not answer."""
    processes = [one.process if isinstance(one, ReplicaState) else "" for one in states.values()]
    return frozenset(one[:_PROCESS] for one in processes) if processes and all(processes) else None


def _is_over(policy: Obj, before: ShadowRecord | None, states: Sequence[PolicyState]) -> bool:
    """Return whether no rule is in shadow any more.

    A replica that has just started serves nothing yet and says nothing of shadow, which ends nothing.
    """
    if not states or not all(one.serving for one in states):
        return False
    if not _says_shadow(policy):
        return True
    return before is not None and all(int(one.serving) > before.generation for one in states if one.serving.isdecimal())


def _says_shadow(policy: Obj) -> bool:
    return mode_of(policy) == "Shadow" or any(
        rule.get("mode") == "Shadow"
        for path in RULE_LISTS
        if isinstance(rules := _find(policy.get("spec"), *path), list)
        for rule in rules
        if isinstance(rule, Mapping)
    )


def _find(part: object, *path: str) -> object:
    for name in path:
        part = part.get(name) if isinstance(part, Mapping) else None
    return part


def _fits(record: ShadowRecord) -> bool:
    return len(msgspec.json.encode(encoded(record))) <= SIZE_MAX


def _rule(rule: RuleKey, sums: Counts) -> dict[str, Any]:
    return {"kind": rule[0], "name": rule[1], **{what: sums.get((rule, what), 0) for what in OF_RULES}}


def _packed(rules: Sequence[RuleKey], counts: Counts) -> str:
    """Return counts as text: the number of those of all rules together, these, and those of each rule.

    Zeros at the end are left out. Each number takes one byte for every seven bits, in base64: fields with names would
    take several times as much for 64 rules on 10 processes.
    """
    numbers = [len(SUMS), *(counts.get((ALL, what), 0) for what in SUMS)]
    numbers += [counts.get((rule, what), 0) for rule in rules for what in OF_RULES]
    while numbers and not numbers[-1]:
        numbers.pop()
    return urlsafe_b64encode(b"".join(map(_varint, numbers))).rstrip(b"=").decode()


def _unpacked(rules: Sequence[RuleKey], text: str) -> Counts:
    """Return counts from text; none from what was not written by this operator."""
    try:
        numbers = [*_varints(urlsafe_b64decode(text + "=" * (-len(text) % 4)))]
    except (binascii.Error, ValueError):
        return {}
    if not numbers:
        return {}
    together, of_rules = numbers[1 : 1 + numbers[0]], numbers[1 + numbers[0] :]
    keys = [(rule, what) for rule in rules for what in OF_RULES]
    # a newer version may count more, and zeros at the end are left out
    found = dict(zip([(ALL, what) for what in SUMS], together, strict=False))
    return found | dict(zip(keys, of_rules, strict=False))


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _varints(data: Iterable[int]) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield number
            number = shift = 0

"""Placeholder for a policy of which no generation has compiled.

It rejects every node, or none, by the failure policy; none if all rules that are written are in shadow. It applies to
the pods that the namespaces and selectors match, with conditions taken as true; if these cannot be read either, to all
pods of the scheduler.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from fairlead.api.mode import are_all_in_shadow, mode_of
from fairlead.api.names import DEFAULT_SCHEDULER_NAME
from fairlead.api.selectors import LabelSelector, compile_selector
from fairlead.policy.compile.model import CompiledMatch, CompiledPolicy, FilterRule, Selector
from fairlead.policy.compile.modes import divided
from fairlead.strategies.contract import CompiledFilter, Filter, Reject
from fairlead.strategies.reads import Reads


def placeholder_policy(obj: Mapping[str, Any], *, yet: bool = True) -> CompiledPolicy:
    """Return what serves in place of a policy that does not compile or, if not `yet`, was not compiled so far."""
    metadata, spec = _map(obj.get("metadata")), _map(obj.get("spec"))
    name = str(metadata.get("name", ""))
    refuses = spec.get("failurePolicy", "Fail") != "Ignore" and not are_all_in_shadow(obj)
    reject = Reject(f"policy {name} does not compile" if yet else f"policy {name} is not compiled yet")
    rule: Filter = CompiledFilter(reads=Reads(), for_pod=lambda _: lambda *_: reject, reasons=(reject.reason,))
    priority = spec.get("priority", 0)
    policy = CompiledPolicy(
        name=name,
        uid=str(metadata.get("uid", "")),
        generation=generation_of(obj),
        placeholder="NotCompiled" if yet else "NotCompiledYet",
        scheduler_name=str(spec.get("schedulerName") or DEFAULT_SCHEDULER_NAME),
        mode=mode_of(obj) or "Enforce",
        priority=int(priority) if isinstance(priority, int | float) and priority == priority // 1 else 0,
        match=_match(spec.get("match")),
        filters=(FilterRule("", rule, rejects_on_error=True, resolvable=False),) if refuses else (),
        rejects_on_failure=refuses,
    )
    return divided(policy)


def generation_of(obj: Mapping[str, Any]) -> str:
    """Return the generation of an object that may be malformed; without one, a hash of its spec."""
    if generation := _map(obj.get("metadata")).get("generation"):
        return str(generation)
    try:
        text = json.dumps(obj.get("spec"), sort_keys=True, default=str)
    except (ValueError, TypeError, RecursionError):  # it contains itself, mixes kinds of keys, or is too deep
        text = ""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _match(written: object) -> CompiledMatch:
    match = _map(written)
    namespaces = match.get("namespaces")
    if namespaces is not None and not _are_names(namespaces):
        return CompiledMatch()
    try:
        of_namespace, of_pod = (_selector(match.get(field)) for field in ("namespaceSelector", "podSelector"))
    except ValueError:  # also ValidationError of pydantic
        return CompiledMatch()
    return CompiledMatch(None if namespaces is None else frozenset(namespaces), of_namespace, of_pod)


def _selector(written: object) -> Selector | None:
    return (
        None
        if written is None
        else compile_selector(LabelSelector.model_validate(written, by_alias=True, by_name=False))
    )


def _are_names(namespaces: object) -> bool:
    return isinstance(namespaces, list) and bool(namespaces) and all(isinstance(one, str) for one in namespaces)


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

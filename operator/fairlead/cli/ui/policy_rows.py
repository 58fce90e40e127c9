"""Policies of the page: mode, generations, rules and what they read, and what their rules in shadow would do. Pure."""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.api.names import SHORT_NAME
from fairlead.cli.inputs.live_policies import LivePolicy
from fairlead.cli.inputs.shadow_counts import CountedShadow, policy_in_shadow
from fairlead.cli.ui.policy_effects import ShadowEffects, effects_on
from fairlead.cli.ui.shown_pods import ShownPod, ShownPods
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import rules_in_shadow


@dataclass(frozen=True, slots=True)
class ShownRule:
    """A rule, and what it reads."""

    kind: str
    name: str
    in_shadow: bool
    on_engine: bool
    uses: Sequence[str]


@dataclass(frozen=True, slots=True)
class ShownPolicy:
    """A policy."""

    name: str
    scheduler: str
    mode: str
    generation: str
    fault: str
    """Reason why another generation serves than the newest, or none; "" if the newest serves."""
    matches: int
    """Number of the shown pods that it applies to."""
    alone: int
    """Number of pods that wait and that it alone keeps from every node with room."""
    rules: Sequence[ShownRule]
    effects: ShadowEffects | None
    live: CountedShadow | None
    """Counts of live calls, as its status has them."""
    commands: Sequence[str]


def policy_rows(shown: ShownPods, stored: Mapping[str, Mapping[str, Any]]) -> list[ShownPolicy]:
    """Return the policies in their order; `stored` are their objects by name, as far as they were read."""
    live = {policy.name: policy for policy in shown.cluster.live_policies}
    effects = {each.policy: each for each in effects_on(shown)}
    compiled: dict[str, CompiledPolicy | None] = {policy.name: policy for policy in shown.policies}
    compiled |= {name: None for name in live if name not in compiled}
    alone = alone_to_blame(shown)
    matches = Counter(name for pod in shown.pods for name in _matching(pod))
    return [
        ShownPolicy(
            name,
            live[name].scheduler if policy is None else policy.scheduler_name,
            _mode(policy, live.get(name)),
            _generation(policy, live.get(name)),
            _fault(shown, live.get(name)),
            matches[name],
            alone[name],
            [] if policy is None else [*_rules(policy)],
            effects.get(name),
            policy_in_shadow(stored.get(name, {})).counts,
            [*_commands(name, policy, is_stored=name in live)],
        )
        for name, policy in compiled.items()
    ]


def alone_to_blame(shown: ShownPods) -> Counter[str]:
    """Count the pods that one policy alone keeps out: a node has room, and only that policy rejects it.

    A pod that fits nowhere is not counted, however many nodes a policy rejects as well.
    """
    counts = Counter[str]()
    for pod in shown.waiting:
        if pod.is_stuck and not pod.judged.left:
            with_room = (node for node in pod.judged.nodes if node.has_room)
            rejecting = {
                frozenset([*(each.policy for each in node.rejections), *node.published_by]) for node in with_room
            }
            counts.update(policy for policies in rejecting if len(policies) == 1 for policy in policies)
    return counts


def _matching(pod: ShownPod) -> set[str]:
    """Return the policies that apply to a pod, to decide or in shadow."""
    matched = [*pod.judged.matched, *(() if pod.as_enforced is None else pod.as_enforced.matched)]
    return {each.policy.name for each in matched}


def _mode(policy: CompiledPolicy | None, live: LivePolicy | None) -> str:
    if live is not None:
        return live.mode or "not known"
    return "not known" if policy is None else policy.mode


def _generation(policy: CompiledPolicy | None, live: LivePolicy | None) -> str:
    if live is not None:
        return str(live.generation)
    return "" if policy is None else f"{policy.generation} (file)"


def _fault(shown: ShownPods, live: LivePolicy | None) -> str:
    if live is None:
        return ""
    states = (state for name, state in shown.explained.schedulers.items() if name == live.scheduler)
    answered = not any(state.is_unanswered for state in states)
    is_current = answered and not live.fault and live.serving == live.generation
    return "" if is_current else live.describe_serving(answered=answered)


def _rules(policy: CompiledPolicy) -> Iterator[ShownRule]:
    shadow = rules_in_shadow(policy)
    for report in policy.reports:
        is_in_shadow = (report.kind, report.name) in shadow
        yield ShownRule(report.kind.lower(), report.name, is_in_shadow, report.evaluation == "Engine", report.uses)


def _commands(name: str, policy: CompiledPolicy | None, *, is_stored: bool) -> Iterator[str]:
    """Yield commands to copy; the page itself changes nothing."""
    if not is_stored:
        return
    quoted = shlex.quote(name)
    yield f"kubectl describe {SHORT_NAME} {quoted}"
    if policy is None:
        return
    if policy.shadow is not None and policy.evaluated:
        yield f"fairlead shadow {quoted}"
    modes = {"Enforce": "Shadow", "Shadow": "Enforce", "Disabled": "Enforce"}
    patch = json.dumps({"spec": {"mode": modes[policy.mode]}})
    yield f"kubectl patch {SHORT_NAME} {quoted} --type merge -p {shlex.quote(patch)}"

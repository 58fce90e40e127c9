"""Summary of a survey: problems, then the state of each policy, scheduler and replica. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

import msgspec

from fairlead.api.names import scheduler_of
from fairlead.cli.inputs.metrics_text import Samples, parse_metrics
from fairlead.cli.inputs.operator_survey import Obj, Survey
from fairlead.cli.installation.scheduler_names import StrayPods
from fairlead.cli.reports.status_data import (
    Overview,
    PolicyRow,
    ReplicaRow,
    RuleRow,
    SchedulerRow,
    Stray,
    UnreadRow,
    WarningRow,
)
from fairlead.cli.reports.status_problems import problems, uninstalled_at
from fairlead.control.decide.persisted_state import STATE
from fairlead.control.decide.retention import SCHEDULER_S
from fairlead.control.decide.rollout_observation import find_condition, is_ready, observe_rollout, pending_pod_reasons
from fairlead.render.object_names import CONFIG_HASH, LEASE, SCHEDULER_LABEL, ObjectNames

_REJECTED: Final = "fairlead_filter_rejected_nodes_total"
_STALENESS: Final = "fairlead_mirror_staleness_seconds"
_SET: Final = "fairlead_policy_set_info"


def overview(survey: Survey, strays: Iterable[StrayPods] = ()) -> Overview:
    """Return the summary of a survey. Pods that nothing serves are not the operator's problem, and it stays ready."""
    samples = {pod: parse_metrics(text) for pod, text in survey.metrics.items()}
    policies = sorted((_policy(one) for one in survey.policies), key=lambda one: (one.ready, one.name))
    schedulers = sorted(_schedulers(survey), key=lambda one: (one.ready is not False, one.name))
    replicas = sorted(_replicas(survey, samples), key=lambda one: (one.ready, one.name))
    wrong = [*problems(survey, samples, policies=policies, schedulers=schedulers, replicas=replicas)]
    rules = sorted(_rules(survey, samples), key=lambda one: (-one.errors, one.policy))
    return Overview(
        ready=not wrong,
        namespace=survey.namespace,
        wrong=wrong,
        warnings=[*_warnings(survey.policies)],
        policies=policies,
        schedulers=schedulers,
        replicas=replicas,
        rules=rules,
        strays=[
            Stray(scheduler=one.scheduler, pods=one.count, pod=one.pod, meant=one.meant, unseen=one.unseen)
            for one in strays
        ],
        not_read=[UnreadRow(what=one.what, why=one.why) for one in survey.unread],
    )


def _policy(obj: Obj) -> PolicyRow:
    metadata, spec, status = obj["metadata"], obj.get("spec", {}), obj.get("status", {})
    ready: Obj = next((one for one in status.get("conditions", ()) if one["type"] == "Ready"), {})
    reason, message = ready.get("reason", "Pending"), ready.get("message", "")
    is_old = status.get("observedGeneration") != metadata["generation"]
    if is_old:
        reason, message = "Pending", f"the operator has not observed generation {metadata['generation']} yet"
    rules = status.get("rules", ())
    return PolicyRow(
        name=metadata["name"],
        ready=ready.get("status") == "True" and not is_old,
        reason=reason,
        message=message,
        scheduler=scheduler_of(obj),
        mode=spec.get("mode", "Enforce"),
        generation=metadata["generation"],
        serving=status.get("servingGeneration"),
        rules=len(rules),
        errors=sum(_errors(one) for one in rules),
    )


def _errors(rule: Obj) -> int:
    count: int = rule.get("errors", {}).get("count", 0)
    return count


def _rules(survey: Survey, samples: Mapping[str, Samples]) -> Iterator[RuleRow]:
    rejected: dict[tuple[str, str], float] = {}
    for one in samples.values():
        for labels, value in one.get(_REJECTED, ()):
            key = labels.get("policy", ""), labels.get("rule", "")
            rejected[key] = rejected.get(key, 0) + value
    for policy in survey.policies:
        name = policy["metadata"]["name"]
        for rule in policy.get("status", {}).get("rules", ()):
            errors = rule.get("errors", {})
            yield RuleRow(
                policy=name,
                kind=rule["kind"],
                name=rule["name"],
                evaluation=rule.get("evaluation", "Strategy"),
                errors=_errors(rule),
                last_error=errors.get("lastMessage", ""),
                last_error_at=errors.get("lastTime", ""),
                rejected_nodes=int(rejected.get((name, rule["name"]), 0)) if samples else None,
            )


def _warnings(policies: Iterable[Obj]) -> Iterator[WarningRow]:
    for policy in policies:
        for one in policy.get("status", {}).get("warnings", ()):
            yield WarningRow(
                policy=policy["metadata"]["name"],
                reason=one["reason"],
                count=one.get("count", 0),
                message=one.get("message", ""),
            )


def _schedulers(survey: Survey) -> Iterator[SchedulerRow]:
    named = [scheduler_of(one) for one in survey.policies]
    labelled = [_label(one) for one in (*survey.deployments, *survey.config_maps)]
    leases = {one["metadata"]["name"]: one for one in survey.leases}
    for name in sorted({*named, *labelled}):
        child = ObjectNames(name, survey.namespace).object_name
        deployment = next((one for one in survey.deployments if one["metadata"]["name"] == child), None)
        published = next((one for one in survey.config_maps if one["metadata"]["name"] == child), None)
        holder = ((leases.get(child) or {}).get("spec") or {}).get("holderIdentity") or ""
        pods = [one for one in survey.pods if _label(one) == name]
        management, ready, message, counted = "", None, "", ""
        if deployment is not None:
            management, ready = "Managed", True
            state = observe_rollout(deployment, pods, leases.get(child))
            message = state.failure or state.pending_reason
            if not message and leases and not state.has_lease:
                message = "none of its pods holds the Lease"
            ready = not message
            counted = f"{deployment.get('status', {}).get('readyReplicas', 0)}/{deployment['spec']['replicas']}"
        elif published is not None:
            management, ready = "ConfigOnly", True
        elif not any(one.part in ("deployments", "configmaps") for one in survey.unread):
            refused = _refusal(survey.policies, name)
            management = "Refused" if refused else ""
            gone = "it was deleted when the operator was uninstalled" if uninstalled_at(survey) is not None else ""
            ready, message = False, refused or gone or "the operator has created nothing for it yet"
        groups, groups_message = _groups(survey.policies, name)
        yield SchedulerRow(
            name=name,
            management=management,
            ready=ready,
            pods=counted,
            leader=holder.partition("_")[0],
            config_hash=_annotation(deployment or published, CONFIG_HASH),
            policies=named.count(name),
            message=message,
            deleted_after="" if name in (*named, *survey.listed) else _deleted_after(survey, name),
            groups=groups,
            groups_message=groups_message,
        )


def _groups(policies: Iterable[Obj], scheduler: str) -> tuple[str, str]:
    """Return whether a scheduler places Kubernetes' own groups, and why; empty if no policy's status says so."""
    parts = [one.get("status", {}).get("scheduler", {}) for one in policies if scheduler_of(one) == scheduler]
    return next(
        (
            (one["groups"], one.get("groupsMessage", ""))
            for one in parts
            if "groups" in one and one.get("name") == scheduler
        ),
        ("", ""),
    )


def _refusal(policies: Iterable[Obj], scheduler: str) -> str:
    """Return why the operator does not manage a scheduler; empty if it does."""
    of_it = [one for one in policies if scheduler_of(one) == scheduler]
    reasons = [find_condition(one.get("status", {}), "Accepted") or {} for one in of_it]
    refused = [one.get("message", "") for one in reasons if one.get("reason") == "SchedulerRefused"]
    return refused[0] if refused and len(refused) == len(of_it) else ""


def _deleted_after(survey: Survey, scheduler: str) -> str:
    """Return the time after which a scheduler without policies is deleted; empty if that is unknown."""
    name = ObjectNames(scheduler, survey.namespace).state
    state = STATE.read(next((one for one in survey.config_maps if one["metadata"]["name"] == name), None)).value
    since = None if state is None else state.retention.empty_since
    return "" if since is None else f"{datetime.fromtimestamp(since + SCHEDULER_S, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _replicas(survey: Survey, samples: Mapping[str, Samples]) -> Iterator[ReplicaRow]:
    lease = next((one for one in survey.leases if one["metadata"]["name"] == LEASE), None)
    holder = ((lease or {}).get("spec") or {}).get("holderIdentity") or ""
    for pod in survey.operator:
        name, told = pod["metadata"]["name"], samples.get(pod["metadata"]["name"], {})
        ages = [value for _, value in told.get(_STALENESS, ())]
        ready = is_ready(pod)
        yield ReplicaRow(
            name=name,
            ready=ready,
            leads=None if any(one.part == "leases" for one in survey.unread) else holder.partition("_")[0] == name,
            policy_set=next((labels.get("hash", "") for labels, _ in told.get(_SET, ())), ""),
            stale_s=round(max(ages), 1) if ages and isfinite(max(ages)) else None,
            restarts=sum(one.get("restartCount", 0) for one in pod["status"].get("containerStatuses", ())),
            message="" if ready else _obstacle(pod),
            terminating="deletionTimestamp" in pod["metadata"],
        )


def _obstacle(pod: Obj) -> str:
    found = next(pending_pod_reasons([pod]), "see its log and /readyz")
    return found.removeprefix(f"{pod['metadata']['name']}: ")


def _label(obj: Obj) -> str:
    found: str = obj["metadata"].get("labels", {}).get(SCHEDULER_LABEL, "")
    return found


def _annotation(obj: Obj | None, key: str) -> str:
    found: str = (obj or {}).get("metadata", {}).get("annotations", {}).get(key, "")
    return found


def status_as_data(what: Overview) -> Any:
    """Return the summary as plain data."""
    return msgspec.to_builtins(what)

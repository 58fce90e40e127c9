"""Problems of a survey, in the order in which to look at them. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.cli.inputs.metrics_text import Samples
from fairlead.cli.inputs.operator_survey import Obj, Survey
from fairlead.cli.reports.status_data import STALE_S, PolicyRow, ProblemRow, ReplicaRow, SchedulerRow
from fairlead.control.decide.rollout_observation import find_condition
from fairlead.control.status.reasons import NOT_REVIEWED, REASONS
from fairlead.render.object_names import LEASE

_OTHER: Final = "fairlead_other_operator"
"""Labels and values by the name of the metric."""
NOT_READ: Final = "NotRead"
"""Reason of the problem that nothing is known of the replicas."""


def problems(
    survey: Survey,
    samples: Mapping[str, Samples],
    *,
    policies: Sequence[PolicyRow],
    schedulers: Sequence[SchedulerRow],
    replicas: Sequence[ReplicaRow],
) -> Iterator[ProblemRow]:
    """Yield all problems."""
    yield from _wrong_operator(survey, [one for one in replicas if not one.terminating])
    yield from _wrong_admission(survey.policies)
    yield from _wrong_leader(survey, replicas)
    yield from _wrong_cluster(survey, samples)
    yield from _wrong_schedulers(schedulers)
    yield from _wrong_policies(policies)
    yield from _wrong_data(survey.policies)


def _wrong_operator(survey: Survey, replicas: Sequence[ReplicaRow]) -> Iterator[ProblemRow]:
    if not replicas:
        if (when := uninstalled_at(survey)) is not None:
            what = f"it was uninstalled{when}: nothing enforces policies, and pods that name their schedulers wait"
            cure = "Install the chart, or delete the policies."
            yield ProblemRow(kind="operator", name=LEASE, reason="Uninstalled", message=what, cure=cure)
        elif any(one.part == "pods of the operator" for one in survey.unread):
            what = f"it is not known whether replicas run in {survey.namespace}: their pods were not read"
            cure = "Ask for the right to list pods there, or name with --namespace where the operator is."
            yield ProblemRow(kind="operator", name=LEASE, reason=NOT_READ, message=what, cure=cure)
        else:
            what = f"it has no pods in {survey.namespace}: policy status is out of date, and schedulers get no answers"
            yield ProblemRow(
                kind="operator", name=LEASE, reason="NotThere", message=what, cure=_cure_of_no_pods(survey)
            )
        return
    if not any(one.ready for one in replicas):
        what = "none of its pods is ready: pods of policies with failurePolicy Fail stay pending"
        yield ProblemRow(kind="operator", name=LEASE, reason="NotReady", message=what)
    for one in replicas:
        if not one.ready:
            yield ProblemRow(kind="replica", name=one.name, reason="NotReady", message=one.message)
        elif one.stale_s is not None and one.stale_s > STALE_S:
            what = f"its cache is {one.stale_s:.0f} s behind the cluster"
            cure = "Check that it reaches the API server."
            yield ProblemRow(kind="replica", name=one.name, reason="Stale", message=what, cure=cure)
    sets = {one.policy_set for one in replicas if one.policy_set}
    if len(sets) > 1:
        what = f"the replicas serve different sets of policies: {', '.join(sorted(sets))}"
        yield ProblemRow(
            kind="operator", name=LEASE, reason="SetsDiffer", message=what, cure="This resolves itself within seconds."
        )


def _wrong_admission(policies: Iterable[Obj]) -> Iterator[ProblemRow]:
    """Yield a problem if no replica reviewed some policies."""
    unreviewed = sorted(
        policy["metadata"]["name"]
        for policy in policies
        if any(one["reason"] == NOT_REVIEWED for one in policy.get("status", {}).get("warnings", ()))
    )
    if unreviewed:
        what = (
            f"the API server does not reach the admission check, so policies were not reviewed: {', '.join(unreviewed)}"
        )
        cure = (
            "Let the API server reach the admission port of the operator's pods, set the chart's ports.admission to a "
            "port that it reaches (10250 on private GKE), or its hostNetwork: true (EKS with an overlay network); then "
            "apply the policies again."
        )
        yield ProblemRow(kind="operator", name=LEASE, reason=NOT_REVIEWED, message=what, cure=cure)


def uninstalled_at(survey: Survey) -> str | None:
    """Return when the operator was uninstalled, as policies say, with a blank before; None if it was not."""
    if survey.operator or survey.own_deployments:
        return None
    conditions = [find_condition(one.get("status", {}), "Ready") or {} for one in survey.policies]
    times = [one.get("lastTransitionTime", "") for one in conditions if one.get("reason") == "Uninstalled"]
    return f" at {latest}" if (latest := max(times, default=None)) else latest


def _cure_of_no_pods(survey: Survey) -> str:
    if not survey.own_deployments:
        return "Install the chart."
    (deployment, *_) = survey.own_deployments
    name = deployment["metadata"]["name"]
    kubectl = f"kubectl --namespace {survey.namespace}"
    if deployment["spec"].get("replicas", 1):
        return f"See `{kubectl} describe deployment {name}`."
    return f"Its Deployment {name} is scaled to 0: run `{kubectl} scale deployment {name} --replicas=2`."


def _wrong_leader(survey: Survey, replicas: Sequence[ReplicaRow]) -> Iterator[ProblemRow]:
    """Yield a problem if replicas answer and none of them leads."""
    if any(one.ready for one in replicas) and all(one.leads is False for one in replicas) and not survey.others:
        what = "none of its replicas leads: schedulers get answers, but no scheduler and no status is updated"
        cure = "After an install or a restart one leads within half a minute. Otherwise see their logs."
        yield ProblemRow(kind="operator", name=LEASE, reason="NoLeader", message=what, cure=cure)


def _wrong_cluster(survey: Survey, samples: Mapping[str, Samples]) -> Iterator[ProblemRow]:
    """Yield a problem for each other operator: a cluster can have only one."""
    cure = "Uninstall one of them: a cluster can have only one operator."
    leads = {labels.get("namespace", "") for one in samples.values() for labels, value in one.get(_OTHER, ()) if value}
    for namespace in sorted(leads):
        what = f"the operator in the namespace {namespace} manages the policies; this one does not"
        yield ProblemRow(kind="operator", name=LEASE, reason="AnotherOperator", message=what, cure=cure)
    if survey.others and not leads:
        what = f"other namespaces have operators too: {', '.join(survey.others)}"
        yield ProblemRow(kind="operator", name=LEASE, reason="AnotherOperator", message=what, cure=cure)


def _wrong_schedulers(schedulers: Iterable[SchedulerRow]) -> Iterator[ProblemRow]:
    for one in schedulers:
        # that one is refused is a problem of its policies, and one that no policy uses any more is about to go
        if one.ready is False and one.management != "Refused" and not one.deleted_after:
            yield ProblemRow(kind="scheduler", name=one.name, reason="NotReady", message=one.message)


def _wrong_policies(policies: Iterable[PolicyRow]) -> Iterator[ProblemRow]:
    for one in policies:
        if not one.ready:
            cure = REASONS[one.reason].hint if one.reason in REASONS else ""  # type: ignore[index]
            yield ProblemRow(kind="policy", name=one.name, reason=one.reason, message=one.message, cure=cure)


_WRONG_DATA: Final = (("DataReady", "False"), ("LearnedStateUnreadable", "True"))
"""Conditions of what rules read, with the status in which something has to be done although the policy is Ready."""


def _wrong_data(policies: Iterable[Obj]) -> Iterator[ProblemRow]:
    """Yield a problem for each policy whose measured values are missing, or whose learned state cannot be read."""
    for policy in policies:
        for one in policy.get("status", {}).get("conditions", ()):
            if (one["type"], one["status"]) in _WRONG_DATA:
                name, reason = policy["metadata"]["name"], one["reason"]
                cure = REASONS[reason].hint if reason in REASONS else ""
                yield ProblemRow(kind="policy", name=name, reason=reason, message=one["message"], cure=cure)

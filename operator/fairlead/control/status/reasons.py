"""Meaning of each reason of a condition, and what to do about it: for `fairlead status` and for the reference."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.control.status.conditions import Reason

NOT_REVIEWED: Final = "NotReviewed"
"""Reason of the warning about generations that the API server stored without a review."""


@dataclass(frozen=True, slots=True)
class ReasonDoc:
    """Documentation of one reason."""

    on: str
    """The conditions that have it first; `Ready` repeats what is wrong, `Reconciling` and `Stalled` follow it."""
    means: str
    hint: str = ""
    """What to do; empty if nothing has to be done."""


REASONS: Final[Mapping[Reason, ReasonDoc]] = {
    "Accepted": ReasonDoc("Accepted", "The policy is valid, and its scheduler can be managed."),
    "SchedulerRefused": ReasonDoc(
        "Accepted",
        "The policy's scheduler cannot be managed: it is the cluster's own, others run a scheduler of that name, "
        "it is not listed while `unlistedSchedulers` is `Deny` or `maxUnlistedSchedulers` others exist, or the "
        "operator's settings or certificates cannot be used for it.",
        "Do what the message says: give the policy another `schedulerName`, list the scheduler in the operator's "
        "setting `schedulers`, or ask the operator's administrator to do so.",
    ),
    "CRDOutdated": ReasonDoc(
        "Accepted",
        "The CustomResourceDefinition in the cluster is older than the operator, so the API server removed a strategy "
        "from a rule of the policy, and that rule now decides nothing.",
        "Apply the CustomResourceDefinition of the operator's version (`fairlead crd | kubectl apply --server-side -f "
        "-`), then apply the policy again. If Helm refuses that definition later, add `--take-ownership` once, with "
        "Helm 4 also `--force-conflicts`.",
    ),
    "InvalidSpec": ReasonDoc("Accepted", "The policy itself cannot be used.", "Fix the field that the message names."),
    "Compiled": ReasonDoc("Compiled", "All rules of this generation compile."),
    "LastGoodServes": ReasonDoc(
        "Compiled",
        "This generation does not compile; the last one that did keeps serving.",
        "Fix the rule that the message names and apply the policy again; `fairlead lint FILE` shows where.",
    ),
    "NothingServes": ReasonDoc(
        "Compiled",
        "No generation of the policy ever compiled: its `failurePolicy` decides, so with `Fail` its pods wait.",
        "Fix the rule that the message names and apply the policy again; `fairlead lint FILE` shows where.",
    ),
    "NotCompiled": ReasonDoc(
        "Compiled",
        "This generation does not compile, and its mode is `Disabled` or `Shadow`: nothing of the policy decides, "
        "neither an earlier generation nor its `failurePolicy`. With `Shadow`, the last generation that compiled is "
        "evaluated in shadow.",
        "Fix the rule that the message names before you set `mode: Enforce`: until it compiles, the last good "
        "generation would serve, or without one the `failurePolicy` would decide.",
    ),
    "InternalError": ReasonDoc(
        "Compiled",
        "The compiler itself failed, which is a bug of Fairlead. The last generation that compiled keeps serving.",
        "Report it together with the policy; until it is fixed, write the rule differently.",
    ),
    "Programmed": ReasonDoc("Programmed", "The policy is in effect in every replica and in its scheduler."),
    "Shadow": ReasonDoc(
        "Programmed, Ready",
        "`mode: Shadow`: the rules are evaluated for real calls, and decide nothing. `status.shadow` counts what they "
        "would have changed.",
        "Set `mode: Enforce` once the numbers are what you expect.",
    ),
    "Disabled": ReasonDoc(
        "Programmed, DataReady, Ready",
        "`mode: Disabled`: the rules are compiled but never applied.",
        "Set `mode: Enforce` to apply them.",
    ),
    "Pending": ReasonDoc(
        "any",
        "Nothing is known yet: the operator has not reconciled the scheduler, or not polled its own replicas.",
        "Wait a few seconds. If it stays, check whether a replica of the operator runs and leads.",
    ),
    "ReplicaSilent": ReasonDoc(
        "Compiled, Programmed",
        "A replica of the operator does not answer the leader, so what it serves is unknown.",
        "Check the log and `/readyz` of that pod. A NetworkPolicy that blocks port 8443 between replicas has the same "
        "effect.",
    ),
    "ReplicaBehind": ReasonDoc(
        "Programmed",
        "A replica does not serve the newest generation. This resolves by itself within seconds.",
        "If it stays, check the replica's `/readyz`: its cache may be stale.",
    ),
    "TooSlow": ReasonDoc(
        "Programmed",
        "The policy missed the deadline of calls twice in a minute for pods of several namespaces, so its "
        "`failurePolicy` answers for 5 minutes.",
        "Make its rules cheaper (`fairlead lint -v` lists those that run on the engine), or raise the scheduler's "
        "`timeout`.",
    ),
    "Rolling": ReasonDoc(
        "Programmed",
        "A new configuration of the scheduler is being rolled out. Within 3 minutes it is verified, or becomes "
        "`ConfigurationRejected`.",
        "Wait; the message says what the rollout waits for.",
    ),
    "ConfigurationRejected": ReasonDoc(
        "Programmed",
        "The scheduler did not run with the new configuration. It was rolled back to the last good one, if there is "
        "one.",
        "Do what the message says: the cause is most often the scheduler's `profile` or `image` in the operator's "
        "settings. The configuration is tried again when a policy, a setting or the operator changes.",
    ),
    "SchedulerUnavailable": ReasonDoc(
        "Programmed",
        "The scheduler ran with this configuration, and now some of its pods are not ready.",
        "Check its pods: `kubectl -n fairlead-system get pods -l fairlead.dev/scheduler=NAME`.",
    ),
    "Forbidden": ReasonDoc(
        "Programmed",
        "A permission is missing.",
        "Grant the RBAC rule that the message names: apply the chart's roles again.",
    ),
    "ReconcileFailed": ReasonDoc(
        "Programmed",
        "The objects of the scheduler could not be read or written. The operator retries within half a minute.",
        "See the message for the cause: a quota, another webhook, or an API server that does not answer.",
    ),
    "Paused": ReasonDoc(
        "Programmed",
        "A policy of that scheduler has the annotation `fairlead.dev/paused` with the value `true`: its rules serve, "
        "and nothing of the scheduler is updated except its certificates.",
        "Remove the annotation.",
    ),
    "DataReady": ReasonDoc(
        "DataReady", "Every node that the policy's pods may use has the values that the policy's data asks for."
    ),
    "DataStale": ReasonDoc(
        "DataReady",
        "Values of some nodes are older than `maxAge`, or have a time in the future: rules that read them cannot "
        "decide, and their `onError` applies.",
        "Check what measures the nodes that the message names: its exporter, its clock, and whether it is scraped.",
    ),
    "DataMissing": ReasonDoc(
        "DataReady",
        "Some nodes have no value, several, or one that is not a number. Nodes that joined in the last 10 minutes, "
        "that have a `default`, or that a filter of the policy rejects by facts of the node alone, do not count.",
        "Do what the message says; `fairlead data POLICY` shows which nodes, on each replica.",
    ),
    "PollFailed": ReasonDoc(
        "DataReady",
        "The source of values does not answer, or cannot be read. Values that are known are used until `maxAge`.",
        "See the message for the cause: a NetworkPolicy, the server's settings, or the query.",
    ),
    "LearnedStateUnreadable": ReasonDoc(
        "LearnedStateUnreadable",
        "What a rule has learned cannot be read, or a newer version of Fairlead wrote it. The rule adds nothing until "
        "it can be read, and the operator leaves the ConfigMap alone. The policy has this condition only for so long.",
        "Upgrade Fairlead, restore the ConfigMap that the message names, or delete it: its rule then learns from the "
        "beginning.",
    ),
    "Exact": ReasonDoc("Published", "New pods get node affinity that selects exactly the nodes that pass its filters."),
    "Wider": ReasonDoc(
        "Published",
        "New pods get node affinity that selects all nodes that pass its filters, and others: labels cannot say the "
        "rest, which the message names. The filters still reject those nodes, but an autoscaler may add one.",
        "Nothing has to be done. To be exact, write what is left out by labels of nodes.",
    ),
    "NotInstalled": ReasonDoc(
        "Published",
        "The admission policy that adds published node affinity to pods is not there.",
        "Do what the message says: set the chart's value `publishedAffinity.enabled`, which needs Kubernetes 1.36, or "
        "upgrade the release, so that what is missing is made again.",
    ),
    "NothingToPublish": ReasonDoc(
        "Published",
        "Nothing of its filters can be said by labels of nodes, it has none, or it is disabled.",
        "`fairlead lint` names each filter, and what it reads. Remove `publish`, or read labels of nodes.",
    ),
    "MatchNotPublishable": ReasonDoc(
        "Published",
        "Its `match` depends on something that is not published, such as a field of the pod's spec. Other pods must "
        "not get its affinity, so that none does.",
        "Match by namespaces, selectors, or conditions on labels and annotations.",
    ),
    "Ready": ReasonDoc("Ready", "The policy's rules serve."),
    "Progressing": ReasonDoc("Reconciling", "A change is in progress and completes by itself.", "Wait."),
    "Uninstalled": ReasonDoc(
        "Programmed, DataReady, Published, LearnedStateUnreadable, Ready",
        "The operator and its schedulers were uninstalled: nothing enforces the policy, and pods that name its "
        "scheduler wait.",
        "Install the operator again, or delete the policy.",
    ),
}

"""What each reason of a condition means, and what to do about it: for `fairlead status` and for the reference."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.control.status.conditions import Reason


@dataclass(frozen=True, slots=True)
class ReasonDoc:
    """For people."""

    on: str
    """The conditions that have it first; `Ready` repeats what is wrong, `Reconciling` and `Stalled` follow it."""
    means: str
    cure: str = ""
    """What to do; empty where there is nothing to do."""


REASONS: Final[Mapping[Reason, ReasonDoc]] = {
    "Accepted": ReasonDoc("Accepted", "The scheduler that the policy names can be had."),
    "SchedulerRefused": ReasonDoc(
        "Accepted",
        "The scheduler that the policy names cannot be had: the cluster's own is never managed, somebody else runs one "
        "of that name, it is not listed while `unlistedSchedulers` is `Deny` or `maxUnlistedSchedulers` others are "
        "there, or the operator's settings or certificates cannot be used for it.",
        "Do what the message says: give the policy another `schedulerName`, or list the scheduler in the operator's "
        "setting `schedulers`, or ask whoever runs the operator to do so.",
    ),
    "InvalidSpec": ReasonDoc(
        "Accepted", "The policy itself cannot be used as it is.", "Mend the field that the message names."
    ),
    "Compiled": ReasonDoc("Compiled", "All rules of this generation compile."),
    "LastGoodServes": ReasonDoc(
        "Compiled",
        "This generation does not compile; the last one that did goes on serving.",
        "Mend the rule that the message names and apply the policy again; `fairlead lint FILE` points at the place.",
    ),
    "NothingServes": ReasonDoc(
        "Compiled",
        "The policy does not compile and never did: its pods are treated by its `failurePolicy`, so with `Fail` they "
        "wait.",
        "Mend the rule that the message names and apply the policy again; `fairlead lint FILE` points at the place.",
    ),
    "InternalError": ReasonDoc(
        "Compiled",
        "The compiler itself failed: a fault of Fairlead's own. The last generation that compiled goes on serving.",
        "Report it with the policy; until then say the rule otherwise.",
    ),
    "Programmed": ReasonDoc("Programmed", "What was written is what happens, in every replica and in the scheduler."),
    "Disabled": ReasonDoc(
        "Programmed, Ready",
        "`mode: Disabled`: the rules are compiled and never applied.",
        "Set `mode: Enforce` to use it.",
    ),
    "Pending": ReasonDoc(
        "any",
        "Nothing is known yet: the operator has not looked at it, or not asked its replicas.",
        "Wait some seconds. If it stays, see whether a replica of the operator runs and leads.",
    ),
    "ReplicaSilent": ReasonDoc(
        "Compiled, Programmed",
        "A replica of the operator does not answer the one that leads, so nobody knows what it serves.",
        "See why that pod does not answer: its log and its `/readyz`; a NetworkPolicy that keeps replicas from each "
        "other's port 8443 has the same effect.",
    ),
    "ReplicaBehind": ReasonDoc(
        "Programmed",
        "A replica serves another generation than the newest. It passes by itself within seconds.",
        "If it stays, see the replica's `/readyz`: what it watches may be stale.",
    ),
    "TooSlow": ReasonDoc(
        "Programmed",
        "The policy missed the deadline of calls twice in a minute for pods of several namespaces, and is replaced by "
        "its `failurePolicy` for 5 minutes.",
        "Make its rules cheaper (`fairlead lint -v` says which run on the engine), or raise the scheduler's `timeout`.",
    ),
    "Rolling": ReasonDoc(
        "Programmed",
        "The scheduler is on its way to a new configuration. It passes by itself within 3 minutes, or becomes "
        "`ConfigurationRejected`.",
        "Wait; the message says what the roll waits for.",
    ),
    "ConfigurationRejected": ReasonDoc(
        "Programmed",
        "The scheduler did not run with the new configuration, and the last good one was put back, or there is none.",
        "Do what the message says: most often the `profile` or the `image` of the scheduler in the operator's "
        "settings. It is tried again when a policy, a setting or the operator changes.",
    ),
    "SchedulerUnavailable": ReasonDoc(
        "Programmed",
        "The scheduler ran with this configuration and is not all there any more: pods of it are not ready.",
        "See its pods: `kubectl -n fairlead-system get pods -l fairlead.dev/scheduler=NAME`.",
    ),
    "Forbidden": ReasonDoc(
        "Programmed",
        "The operator lacks a permission.",
        "Give it the rule that the message names: apply the chart's roles again.",
    ),
    "ReconcileFailed": ReasonDoc(
        "Programmed",
        "What the scheduler is made of could not be looked at or written. It is tried again within half a minute.",
        "See what the message says: a quota, a webhook of others, or an API server that does not answer.",
    ),
    "Paused": ReasonDoc(
        "Programmed",
        "A policy of that scheduler has the annotation `fairlead.dev/paused` with the value `true`: its rules serve, "
        "and nothing of the scheduler but its certificates is written.",
        "Remove the annotation.",
    ),
    "Ready": ReasonDoc("Ready", "The policy's rules serve."),
    "Progressing": ReasonDoc("Reconciling", "Something is on its way that passes by itself.", "Wait."),
}

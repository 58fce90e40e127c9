"""Fields of `fairlead status -o json`: they stay, and more may be added."""

from typing import Final

import msgspec

STALE_S: Final = 120.0
"""Staleness of a cache from which it is a problem, as in the chart's alert; bookmarks arrive every minute."""


class Row(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of the parts of the output."""


class ProblemRow(Row, frozen=True, kw_only=True):
    """A problem."""

    kind: str
    """One of operator, replica, scheduler and policy."""
    name: str
    reason: str
    message: str
    cure: str = ""


class WarningRow(Row, frozen=True, kw_only=True):
    """A warning of a policy's status."""

    policy: str
    reason: str
    count: int
    message: str


class PolicyRow(Row, frozen=True, kw_only=True):
    """One policy."""

    name: str
    ready: bool
    reason: str
    message: str
    scheduler: str
    mode: str
    generation: int
    serving: int | None
    """Serving generation; None if there is none, or if replicas differ."""
    rules: int
    errors: int
    """Number of errors of all its rules."""


class RuleRow(Row, frozen=True, kw_only=True):
    """One rule."""

    policy: str
    kind: str
    name: str
    evaluation: str
    errors: int
    last_error: str
    last_error_at: str
    rejected_nodes: int | None
    """Since the replicas started; None: unknown."""


class SchedulerRow(Row, frozen=True, kw_only=True):
    """One scheduler."""

    name: str
    management: str
    """Managed, ConfigOnly, Refused, or empty: unknown."""
    ready: bool | None
    """None: unknown."""
    pods: str
    leader: str
    config_hash: str
    policies: int
    message: str
    deleted_after: str = ""
    """Time after which it is deleted, because no policy uses it; empty: it stays."""
    groups: str = ""
    """Native or Off, as its policies' status has it: whether it places Kubernetes' own groups; empty: unknown."""
    groups_message: str = ""
    """Reason that it does, or what is missing."""


class ReplicaRow(Row, frozen=True, kw_only=True):
    """One pod of the operator."""

    name: str
    ready: bool
    leads: bool | None
    policy_set: str
    stale_s: float | None
    """Seconds since the API server last confirmed its cache; None: unknown. Up to 120 are normal."""
    restarts: int
    message: str
    terminating: bool = False
    """Whether its pod is being terminated; if so, it is not counted and need not be ready."""


class Stray(Row, frozen=True, kw_only=True):
    """Pods that wait for a scheduler that nothing in the cluster is called."""

    scheduler: str
    pods: int
    pod: str
    """Namespace and name of one of them."""
    meant: str
    """The name that was probably meant; "" if none is similar."""
    unseen: str
    """Places that may not be searched for a scheduler of that name, and why; "" if there are none."""


class UnreadRow(Row, frozen=True, kw_only=True):
    """A part of the cluster that could not be read."""

    what: str
    why: str


class Overview(Row, frozen=True, kw_only=True):
    """The whole output."""

    ready: bool
    namespace: str
    wrong: list[ProblemRow]
    warnings: list[WarningRow]
    policies: list[PolicyRow]
    schedulers: list[SchedulerRow]
    replicas: list[ReplicaRow]
    rules: list[RuleRow]
    strays: list[Stray]
    not_read: list[UnreadRow]

"""The fields of `fairlead status -o json`: they stay, and more may come."""

import msgspec


class Line(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of what is printed."""


class Wrong(Line, frozen=True, kw_only=True):
    """Something that is not as it is meant to be."""

    kind: str
    """operator, replica, scheduler or policy"""
    name: str
    reason: str
    message: str
    cure: str = ""


class Warned(Line, frozen=True, kw_only=True):
    """Something that works and is probably not what was meant."""

    policy: str
    reason: str
    count: int
    message: str


class Policy(Line, frozen=True, kw_only=True):
    """One policy."""

    name: str
    ready: bool
    reason: str
    message: str
    scheduler: str
    mode: str
    generation: int
    serving: int | None
    """The generation that answers the scheduler; None: none, or not all replicas have the same."""
    rules: int
    errors: int
    """Of all its rules."""


class Rule(Line, frozen=True, kw_only=True):
    """One rule."""

    policy: str
    kind: str
    name: str
    evaluation: str
    errors: int
    last_error: str
    last_error_at: str
    rejected_nodes: int | None
    """Since the replicas began; None: not known."""


class Scheduler(Line, frozen=True, kw_only=True):
    """One scheduler."""

    name: str
    management: str
    """Managed, ConfigOnly, or empty: not known."""
    ready: bool | None
    """None: not known."""
    pods: str
    leader: str
    config_hash: str
    policies: int
    message: str


class Replica(Line, frozen=True, kw_only=True):
    """One pod of the operator."""

    name: str
    ready: bool
    leads: bool | None
    policy_set: str
    stale_s: float | None
    """How long what it decides by may be behind the cluster; None: not known."""
    restarts: int
    message: str


class NotRead(Line, frozen=True, kw_only=True):
    """Something that could not be read."""

    what: str
    why: str


class Overview(Line, frozen=True, kw_only=True):
    """All of it."""

    ready: bool
    namespace: str
    wrong: list[Wrong]
    warnings: list[Warned]
    policies: list[Policy]
    schedulers: list[Scheduler]
    replicas: list[Replica]
    rules: list[Rule]
    not_read: list[NotRead]

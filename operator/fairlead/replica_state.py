"""State that a replica reports to the leader at `/state`: its serving generations and their rule errors."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

PATH: Final = "/state"
ASIDE_PATH: Final = "/state/aside"
"""The same report, with the request to step aside: another replica has the values that this one lacks."""
DATA_PATH: Final = "/data/"
"""Path below which the values of an entry are, as POLICY/ENTRY."""
DEVICES_PATH: Final = "/devices/"
"""Path of the totals of devices, and below it of the devices of a node, by its name."""

METRICS_PATH: Final = "/metrics"
"""Path of the metrics, for `fairlead status` where their own port asks for a token."""


class RuleState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of a rule of the serving generation."""

    kind: str
    name: str
    mode: str = ""
    """The mode in which it is in force, without that of its policy being Disabled; "" if the replica does not say."""
    uses: tuple[str, ...] = ()
    evaluation: str = ""
    errors: int = 0
    """Errors since this replica serves the generation."""
    last_error: str = ""
    last_error_at: str = ""


class FaultState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nodes without a usable value, for one reason."""

    why: str
    nodes: int
    names: tuple[str, ...] = ()
    """A few of them; values that are too old have their age."""


class DataEntryState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of what is measured for an entry of a policy's data."""

    name: str
    source: str
    interval_s: int = 0
    """Seconds between two polls; 0 for a source that is watched."""
    greatest_age_s: int = 0
    """Seconds after which a value is too old; 0: never."""
    answered: bool = False
    """Whether the source was asked at least once, with or without success."""
    succeeded_s_ago: int | None = None
    """Seconds since the last poll that succeeded; None if none did."""
    error: str = ""
    """Why the last poll failed; "" if it did not."""
    note: str = ""
    failures: int = 0
    nodes: int = 0
    with_value: int = 0
    on_default: int = 0
    young: int = 0
    """Nodes without a value that joined a moment ago."""
    oldest_s: int | None = None
    median_s: int | None = None
    faults: tuple[FaultState, ...] = ()
    decides: bool = True
    """Whether a rule that decides reads it; else rules in shadow do, or none."""

    @property
    def has_value(self) -> bool:
        """Return whether a node has a usable value that was measured; a default tells nothing of the source."""
        return self.with_value > 0

    @property
    def is_cut_off(self) -> bool:
        """Return whether it decides, the last poll failed, and no node has a usable value that was measured."""
        return self.decides and bool(self.error) and self.nodes > 0 and not self.has_value


class WaitingGroups(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Groups of a policy that have waited for long and have not started."""

    complete: int = 0
    """Those of which enough members are known."""
    incomplete: int = 0
    longest: str = ""
    """The one that has waited longest, by namespace and value."""


class PublicationState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Node affinity that the serving generation of a policy publishes."""

    policy: dict[str, Any] | None = None
    """Its part of a PublishedAffinity; None if it publishes nothing."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Parts that are not published: the rule, and why."""
    unknown_match: str = ""
    """The part of `match` that labels cannot say, so that nothing is published, and what it reads."""


class PublicationGaps(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pods without what a policy publishes for them, and nodes without its labels when they joined."""

    outdated: int = 0
    """Pods that wait, with node affinity that was published before."""
    outdated_pods: tuple[str, ...] = ()
    """A few of them, as NAMESPACE/NAME."""
    missed: int = 0
    """Pods that were created lately, or wait, without node affinity that was published before them."""
    missed_pods: tuple[str, ...] = ()
    late_labels: int = 0
    """Published keys that came on a node after it had joined, each counted for each node."""
    late: tuple[str, ...] = ()
    """A few of them, as text."""


class ShadowRuleCounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pods that one rule in shadow alone would have changed something for."""

    kind: str
    name: str
    pods: int = 0
    """Those with any effect."""
    unschedulable: int = 0


class ShadowCounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts of what the rules in shadow of one generation would have changed; they only grow while a process runs."""

    generation: str = ""
    calls: int = 0
    """Calls that were compared, unknown or skipped."""
    skipped: int = 0
    unknown: int = 0
    pods: int = 0
    """Pods of which a call was compared."""
    restricted: int = 0
    """Pods that would have lost some of the nodes that passed."""
    unschedulable: int = 0
    """Pods that would have lost all of them."""
    reordered: int = 0
    """Pods for which none of the best nodes would have been among the best ones."""
    evictions: int = 0
    """Pods for which a candidate for preemption would have been dropped."""
    too_slow: int = 0
    """Times that a class of pods took too long to evaluate."""
    rules: tuple[ShadowRuleCounts, ...] = ()


class PolicyState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of a policy."""

    uid: str
    generation: str
    """Newest generation that the replica has seen."""
    serving: str = ""
    """Serving generation; "" if none serves."""
    reason: str
    message: str = ""
    slow: bool = False
    """Whether its circuit is open for all pods."""
    slow_for: tuple[str, ...] = ()
    """Circuits that are open for some pods, as text."""
    scheduler: str = ""
    mode: str = ""
    """The mode in which it is in force; "" if the replica does not say, as older ones do. A newer one may say what this
    version does not know."""
    fails: bool = False
    ignores: bool = False
    scores: bool = False
    binds: bool = False
    """Wiring that the serving generation needs: filter entries by failure policy, scores, bind."""
    hold_s: int = 0
    """Longest time for which it holds binds of members of a group; 0: it holds none."""
    asks_all: bool = False
    """Whether it needs calls with all nodes."""
    rules: tuple[RuleState, ...] = ()
    conflicts: tuple[str, ...] = ()
    """Annotation conflicts with other policies, as text."""
    rejected_pods: int = 0
    """Unplaced pods for which this policy alone left no node."""
    missed_samples: int = 0
    """Calls in which it rejected all nodes of the sample although another node would have passed."""
    waiting_groups: WaitingGroups | None = None
    """Groups that have waited for long; None if there are none."""
    publication: PublicationState | None = None
    """Node affinity that it publishes; None if it does not say `publish`, or is not in force."""
    gaps: PublicationGaps | None = None
    """Pods and nodes that its publication does not reach; None if there are none."""
    shadow: ShadowCounts | None = None
    """Counts of what its rules in shadow would have changed; None if none of them is evaluated in shadow."""
    data: tuple[DataEntryState, ...] = ()
    """Its measured entries."""
    reviewed: int = 0
    """Newest generation that the API server had this replica review; 0: none since it started."""
    unreadable: tuple[str, ...] = ()
    """Faults of the ConfigMaps that have what its rules have learned, and cannot be read."""
    missing_permission: str = ""
    """Missing permission to read what only this policy names, with the RBAC rule to add; "" if none is missing."""


class ReplicaState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of a replica."""

    process: str = ""
    """Random ID that changes at each start, when the replica loses its knowledge of pods."""
    policy_set: str = ""
    """Hash of the serving policy set; "" before there is one."""
    policies: dict[str, PolicyState] = {}
    authorities: str = ""
    """Hash of the authorities that it trusts."""
    issuer: str = ""
    """Hash of the authority that issued its certificate."""
    refused_connections: dict[str, str] = {}
    """Reasons of recently refused connections, by address."""
    missing_permission: str = ""
    """Missing permission that concerns every policy, with the RBAC rule to add; "" if none is missing."""
    reviews: bool = False
    """True if it has an admission check and says which generations it reviewed; older replicas do not."""
    has_rejected_pods: bool = False
    """Whether it has left a pod without a node that may be placed later."""
    schedulable_again: bool = False
    """Whether pods that it rejected may be schedulable again, so that the scheduler must be woken."""


ReplicaStates: TypeAlias = Mapping[str, ReplicaState | str]
"""State of each replica by the name of its pod, or why it is unknown."""

decode: Final = msgspec.json.Decoder(ReplicaState).decode
encode: Final = msgspec.json.Encoder().encode

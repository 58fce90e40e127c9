"""What a replica says of itself to the one that leads: what serves there, and what came of it."""

from typing import Final

import msgspec

PATH: Final = "/state"


class RuleState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule of the generation that serves."""

    kind: str
    name: str
    uses: tuple[str, ...] = ()
    evaluation: str = ""
    errors: int = 0
    """Since this replica serves this generation."""
    last_error: str = ""
    last_error_at: str = ""


class PolicyState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One policy."""

    uid: str
    generation: str
    """The one that was seen last."""
    serving: str = ""
    """The one that serves; empty if none does."""
    reason: str
    message: str = ""
    slow: bool = False
    """Whether it is switched to its failure policy for all pods."""
    slow_for: tuple[str, ...] = ()
    """For which others what of it is switched, in words."""
    scheduler: str = ""
    fails: bool = False
    ignores: bool = False
    scores: bool = False
    binds: bool = False
    """What of a scheduler's wiring the generation that serves needs."""
    rules: tuple[RuleState, ...] = ()
    conflicts: tuple[str, ...] = ()
    """What collides with other policies, in words."""
    refused_pods: int = 0
    """Pods that wait for a node, and for which this policy alone left none."""
    missed_samples: int = 0
    """Calls in which it refused all nodes although another one would have passed."""


class ReplicaState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A replica."""

    process: str = ""
    """Another one after each start: what it knew of pods is gone then."""
    policy_set: str = ""
    """The generation of the set that serves; empty before there is one."""
    policies: dict[str, PolicyState] = {}
    authorities: str = ""
    """A hash of the authorities that it believes."""
    issuer: str = ""
    """A hash of the authority that its own certificate is from."""
    turned_away: dict[str, str] = {}
    """Why, of addresses that were turned away in the last seconds."""
    missing: str = ""
    """A right that it lacks, and the rule to add."""
    freed: bool = False
    """Whether pods that it refused could be placed now: they have to be woken."""


decode: Final = msgspec.json.Decoder(ReplicaState).decode
encode: Final = msgspec.json.Encoder().encode

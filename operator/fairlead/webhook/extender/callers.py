"""Authorization of callers: each scheduler for its own pods only, by the common name of its certificate.

The name proves the identity only if Fairlead alone signs for the authority of callers; else see
`WebhookServer.identity_error`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.api.errors import InvalidObjectError
from fairlead.pki.identities import OPERATOR, scheduler_identity
from fairlead.policy.compile.model import CompiledPolicy, longest_holds
from fairlead.policy.evaluate.matching import with_ignore_entry
from fairlead.render.extenders import bind_timeout_s
from fairlead.render.object_names import OPERATOR_SECRET, ObjectNames
from fairlead.render.operator_settings import OperatorSettings
from fairlead.webhook.extender.call import Caller, Verb

SYSTEM: Final = "kube-system"

_OPERATOR = Caller(schedulers=frozenset())
"""The operator may call to verify that the webhook answers; it places no pods."""


def expected(settings: OperatorSettings, existing: Collection[str], in_policies: Iterable[str]) -> frozenset[str]:
    """Return the schedulers that may call: listed and existing ones, and those in policies if there is room for them.

    A policy is not required: pods of a scheduler that calls Fairlead must be bound even after its last policy is
    deleted.
    """
    from_policies = in_policies if settings.has_room(existing) else ()
    return frozenset({*existing, *(one.name for one in settings.schedulers), *from_policies})


def callers(
    names: Iterable[str], settings: OperatorSettings, policies: Iterable[CompiledPolicy], namespace: str
) -> tuple[Caller, ...]:
    """Return a caller per scheduler name; a name that must be listed and is not may not call."""
    policies = [one for one in policies if one.enforced]
    ignoring, hold_s, found = with_ignore_entry(policies), longest_holds(policies), []
    for name in sorted({*names}):
        try:
            one = settings.scheduler(name)
        except InvalidObjectError:
            continue
        managed = one.management == "Managed"
        found.append(
            Caller(
                schedulers=frozenset({name}),
                excluded_namespaces=frozenset({SYSTEM, namespace}) if managed else frozenset(),
                ignore_entry=name in ignoring,
                wants_all_reasons=not managed,
                timeout_s=one.timeout.seconds,
                bind_timeout_s=longest_bind_s({name}, hold_s),
                asks_a_sample=one.node_sample not in ("Auto", "100%"),
            )
        )
    return tuple(found)


def longest_bind_s(schedulers: Iterable[str], hold_s: Mapping[str, int]) -> int | None:
    """Return how long these schedulers wait for a bind by the longest hold of each; None: as long as for other calls.

    They do once they have the configuration that goes with these holds; before that they give up earlier.
    """
    longest = max((hold_s.get(one, 0) for one in schedulers), default=0)
    return bind_timeout_s(longest) if longest else None


def allowed(schedulers: Iterable[Caller]) -> Mapping[str, Caller]:
    """Return the callers by the common names of their certificates; each caller is one scheduler."""
    return {scheduler_identity(name): caller for caller in schedulers for name in caller.schedulers}


@dataclass(slots=True)
class Callers:
    """Allow-list of callers, called with the common name of a certificate."""

    schedulers: Callable[[], Iterable[Caller]]
    """Returns the current callers, from settings and policies."""
    _of: Iterable[Caller] = ()
    _allowed: Mapping[str, Caller] = field(default_factory=dict)

    def __call__(self, name: str, _verb: Verb) -> Caller | None:
        """Return the caller of this common name; None if it may not call."""
        return _OPERATOR if name == OPERATOR else self._now().get(name)

    def secret(self, name: str, namespace: str) -> str:
        """Return the Secret of a caller's certificate if users or cert-manager provide it; "" if it may not call."""
        if name == OPERATOR:
            return OPERATOR_SECRET
        caller = self._now().get(name)
        return "" if caller is None else ObjectNames(next(iter(caller.schedulers)), namespace).certificate

    def _now(self) -> Mapping[str, Caller]:
        if (now := self.schedulers()) is not self._of:
            self._of, self._allowed = now, allowed(now)
        return self._allowed


ADDRESSES: Final = 128
LATELY_NS: Final = 10_000_000_000
"""How long a refused connection is reported."""


@dataclass(slots=True)
class RefusedConnections:
    """Last refused connections by address, each with its last reason. Times are of a monotonic clock."""

    limit: int = ADDRESSES
    _last: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, address: str, reason: str, at: int) -> None:
        """Record a refused connection."""
        self._last.pop(address, None)
        if len(self._last) >= self.limit:
            del self._last[next(iter(self._last))]
        self._last[address] = at, reason

    def recent(self, at: int) -> Mapping[str, str]:
        """Return the reasons of recently refused connections by address."""
        return {address: reason for address, (when, reason) in self._last.items() if at - when <= LATELY_NS}

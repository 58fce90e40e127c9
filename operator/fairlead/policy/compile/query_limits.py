"""Limits of the different queries that all policies together may ask of a Prometheus server.

They are for the set of policies: each takes what is left, in an order on which all replicas agree. The one that would
need more does not compile.
"""

from collections import defaultdict
from collections.abc import Mapping

from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.policy_errors import Fault, in_field
from fairlead.policy.views.polls import PrometheusPoll, poll_of


class QueryLimits:
    """The queries of the policies that were taken so far."""

    def __init__(self, limits: Mapping[str, int] | None) -> None:
        """`limits`: the number of different queries by server; None if that is not known."""
        self._limits = limits or {}
        self._taken = defaultdict[str, set[PrometheusPoll]](set)

    def take(self, policy: CompiledPolicy) -> Fault | None:
        """Take the queries of a policy, or return the fault of the first one beyond the limit, and take none."""
        if not policy.enforced:
            return None  # nothing is asked for it
        wanted = defaultdict[str, set[PrometheusPoll]](set)
        for at, entry in enumerate(policy.data):
            poll = poll_of(entry)
            if not isinstance(poll, PrometheusPoll) or (limit := self._limits.get(poll.server)) is None:
                continue
            wanted[poll.server].add(poll)
            if len(self._taken[poll.server] | wanted[poll.server]) > limit:
                message = f"the server {poll.server} answers at most {limit} different queries of all policies"
                hint = f"share queries between policies, or raise maxEntries of {poll.server} in the settings"
                return in_field(("spec", "data", at, "prometheus"), message, hint)
        for server, polls in wanted.items():
            self._taken[server] |= polls
        return None

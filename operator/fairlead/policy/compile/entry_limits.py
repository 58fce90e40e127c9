"""Limits of the different measured entries that all policies may have together.

Each has a table of the values of all nodes, which every publication goes through, so that entries cost more than
queries. The limits are for the set of policies: each takes what is left, in an order on which all replicas agree. The
one that would need more does not compile.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.policy_errors import Fault, in_field
from fairlead.policy.nodes.measured_table import TableKey, table_key

OTHERS_MAX: Final = 128
"""Different entries of nodeMetrics, and of configMap."""


class EntryLimits:
    """The entries of the policies that were taken so far. Equal ones count once, whatever their names and ages."""

    def __init__(self, servers: Mapping[str, int] | None) -> None:
        """`servers`: the number of different entries by Prometheus server; None if that is not known."""
        self._servers = servers or {}
        self._taken = defaultdict[str, set[TableKey]](set)

    def take(self, policy: CompiledPolicy) -> Fault | None:
        """Take the entries of a policy, or return the fault of the first one beyond a limit, and take none."""
        if not policy.evaluated:
            return None  # nothing is measured for it
        wanted = defaultdict[str, set[TableKey]](set)
        for at, entry in enumerate(policy.data):
            if (key := table_key(entry)) is None:
                continue
            poll = key.poll
            kind, most, hint = poll.field, OTHERS_MAX, "share entries between policies"
            if poll.server is not None:
                if poll.server not in self._servers:
                    continue
                kind, most = f"{poll.field} {poll.server}", self._servers[poll.server]
                hint += f", or raise maxEntries of {poll.server} in the settings"
            wanted[kind].add(key)
            if len(self._taken[kind] | wanted[kind]) > most:
                message = (
                    f"all policies together may have at most {most} different entries of {kind}, by what is asked,"
                    " factor and round"
                )
                return in_field(("spec", "data", at, poll.field), message, hint)
        for kind, keys in wanted.items():
            self._taken[kind] |= keys
        return None

"""Learned state of a snapshot: what its ConfigMaps say that the rules of policies have learned."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from fairlead.learned.published import LearnedState, decode
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.learned_demands import LearnedRequests
from fairlead.policy.nodes.learned_facts import put_content, table_of, tables_of
from fairlead.policy.nodes.learned_tables import TableOfRule
from fairlead.policy.nodes.node_table import Nodes
from fairlead.simulation.snapshot import Raw
from fairlead.strategies.reads import DemandsRead

_NO_VERSION: Final = {"resourceVersion": ""}


def state_of(raw: Raw) -> LearnedState | None:
    """Return the learned state of a ConfigMap; None if it does not say which rule it belongs to.

    Raises msgspec.DecodeError if it is no object.
    """
    obj = msgspec.json.decode(raw)
    return decode({**obj, "metadata": {**_NO_VERSION, **obj["metadata"]}})


class LearnedStates:
    """Learned state of the rules of policies, which nodes get."""

    def __init__(self, nodes: Nodes, policies: Sequence[CompiledPolicy]) -> None:
        self._nodes = nodes
        self._tables = {
            (policy.name, table.rule, table.meaning): (policy.uid, table)
            for policy in policies
            for table in tables_of(policy)
        }
        nodes.learned.keep(table for _, table in self._tables.values())
        self.requests: Final = LearnedRequests()
        nodes.learned_demands = self.requests
        kept = dict[TableOfRule, DemandsRead]()
        for policy in policies:
            for name, read in policy.demanding:
                table = table_of(policy, name, read)
                kept[table] = read
                self._tables[policy.name, name, read.meaning] = policy.uid, table
        self.requests.keep(kept)
        self._states: dict[TableOfRule, list[LearnedState]] = {table: [] for _, table in self._tables.values()}
        self.unclaimed: Final = list[str]()
        """Names of the ConfigMaps that do not say which rule they belong to."""

    @property
    def states(self) -> Mapping[TableOfRule, Sequence[LearnedState]]:
        """Return what was read of each rule."""
        return self._states

    def put(self, raw: Raw, name: str) -> None:
        """Take a ConfigMap; one that belongs to no rule, or to one with another meaning, is left out.

        Raises msgspec.DecodeError if it is no object.
        """
        if not self._tables:
            return
        state = state_of(raw)
        if state is None:
            self.unclaimed.append(name)
            return
        if (found := self._tables.get((state.rule.policy, state.rule.name, state.rule.meaning))) is None:
            return
        uid, table = found
        if uid not in ("", state.rule.uid):  # a policy from a file is the one of that name
            return
        self._states[table].append(state)
        put_content(self._nodes, self.requests, table, state.number, state.content)

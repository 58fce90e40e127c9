"""Learned state of a snapshot: what its ConfigMaps say that the rules of policies have learned."""

from collections.abc import Sequence
from typing import Final

import msgspec

from fairlead.learned.content import demands_in, pairs_in
from fairlead.learned.published import decode
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.learned_demands import LearnedRequests
from fairlead.policy.nodes.learned_facts import table_of, tables_of
from fairlead.policy.nodes.learned_tables import TableOfRule
from fairlead.policy.nodes.node_table import Nodes
from fairlead.simulation.snapshot import Raw
from fairlead.strategies.reads import DemandsRead

_NO_VERSION: Final = {"resourceVersion": ""}


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
        self._requests = LearnedRequests()
        nodes.learned_demands = self._requests
        kept = dict[TableOfRule, DemandsRead]()
        for policy in policies:
            for name, read in policy.demanding:
                table = table_of(policy, name, read)
                kept[table] = read
                self._tables[policy.name, name, read.meaning] = policy.uid, table
        self._requests.keep(kept)

    def put(self, raw: Raw) -> None:
        """Take a ConfigMap; one that belongs to no rule, or to one with another meaning, is left out.

        Raises msgspec.DecodeError if it is no object.
        """
        if not self._tables:
            return
        obj = msgspec.json.decode(raw)
        state = decode({**obj, "metadata": {**_NO_VERSION, **obj["metadata"]}})
        if (
            state is None
            or (found := self._tables.get((state.rule.policy, state.rule.name, state.rule.meaning))) is None
        ):
            return
        uid, table = found
        if uid not in ("", state.rule.uid):  # a policy from a file is the one of that name
            return
        content = None if state.document.fault else state.document.value or {}
        if table in self._requests.rules:
            self._requests.put(table, demands_in(content))
        else:
            self._nodes.put_learned(table, state.number, pairs_in(content))

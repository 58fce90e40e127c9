"""Watch of published learned state, from the first policy that learns on: every replica answers from what it shows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_set import ReflectorSet
from fairlead.kube.watch.store import EventSink, Key, Meta
from fairlead.learned.content import Content
from fairlead.learned.learner import Versions
from fairlead.learned.published import LABEL, LearnedState, decode, names_of
from fairlead.policy.nodes.learned_demands import LearnedRequests
from fairlead.policy.nodes.learned_facts import put_content
from fairlead.policy.nodes.learned_tables import TableOfRule
from fairlead.policy.nodes.node_table import Nodes
from fairlead.webhook.learning.followed_rules import AnyRule, FollowedRequests, FollowedRule

_PAGE: Final = 4  # each may have 400 KiB
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ListedState(NamedTuple):
    """ConfigMap with the label of learned state; None if it does not say which rule it belongs to."""

    metadata: Meta
    state: LearnedState | None


def read_state(raw: bytes | msgspec.Raw) -> ListedState:
    """Decode a ConfigMap."""
    config_map = _decode(raw)
    return ListedState(msgspec.convert(config_map["metadata"], Meta), decode(config_map))


class StateSink(EventSink):
    """Sink of published state, which tells the nodes what each rule that is followed has learned."""

    def __init__(self, nodes: Nodes, now: Callable[[], int]) -> None:
        self._nodes, self._now = nodes, now
        self.requests: Final = LearnedRequests()
        nodes.learned_demands = self.requests
        self._states: dict[str, LearnedState | None] = {}
        self._rules: Sequence[AnyRule] = ()
        self.kept: Sequence[AnyRule] = ()
        """Rules that have tables: those that were set last, and those before them."""
        self.changed_at: dict[TableOfRule, int] = {}
        """When the state of a rule changed last, as this process saw it: time of day in nanoseconds."""
        self.versions: Callable[[], Iterable[Versions]] = tuple
        """Returns what learners of this process know of the published versions; they are shown each change."""

    @property
    def states(self) -> Mapping[str, LearnedState | None]:
        """Return all that is published, by the name of its ConfigMap; None for what belongs to no rule."""
        return self._states

    def of_rule(self, table: TableOfRule) -> list[LearnedState]:
        """Return the published state of a rule."""
        return [one for one in self._states.values() if one is not None and _table(one) == table]

    def show_all(self, versions: Versions) -> None:
        """Show all that is published to a learner."""
        for name, state in self._states.items():
            _show(versions, name, state)
        versions.is_listed = True

    def set_rules(self, rules: Sequence[AnyRule]) -> None:
        """Keep tables for these rules, and for those that serve until these do."""
        known = {*self._nodes.learned.tables, *self.requests.rules}
        kept = [*self._rules, *rules]  # of two that read the same requests in another way, the new one
        self._rules, self.kept = rules, kept
        self._nodes.learned.keep([one.table for one in reversed(kept) if isinstance(one, FollowedRule)])
        self.requests.keep({one.table: one.demands for one in kept if isinstance(one, FollowedRequests)})
        new = {one.table for one in rules} - known
        for state in [*self._states.values()]:
            if state is not None and _table(state) in new:
                self._publish(state)
        tables = {one.table for one in kept}
        self.changed_at = {table: at for table, at in self.changed_at.items() if table in tables}

    def put(self, item: ListedState, /) -> None:
        """Add or update a ConfigMap."""
        before, state = self._states.get(item.metadata.name), item.state
        self._states[item.metadata.name] = state
        if before is not None and (state is None or _place(before) != _place(state)):
            self._clear(before)
        if state is not None:
            self._publish(state)
        for versions in self.versions():
            _show(versions, item.metadata.name, state)

    def remove(self, key: Key, /) -> None:
        """Remove a ConfigMap."""
        state = self._states.pop(key[1], None)
        if state is not None:
            self._clear(state)
            for versions in self.versions():
                if (versions.rule.policy, versions.rule.name) == (state.rule.policy, state.rule.name):
                    versions.remove(state.number, state.rv)

    def _publish(self, state: LearnedState) -> None:
        if state.name in names_of(state.rule, state.number):  # else it is a copy
            self._put(state, state.content)

    def _clear(self, state: LearnedState) -> None:
        if state.name in names_of(state.rule, state.number):
            self._put(state, {})

    def _put(self, state: LearnedState, content: Content | None) -> None:
        table = _table(state)
        if put_content(self._nodes, self.requests, table, state.number, content):
            self.changed_at[table] = self._now()


def _show(versions: Versions, name: str, state: LearnedState | None) -> None:
    if state is None:
        versions.show_taken(name)
    else:
        versions.show(state)


def _table(state: LearnedState) -> TableOfRule:
    return TableOfRule(state.rule.uid or state.rule.policy, state.rule.name, state.rule.meaning)


def _place(state: LearnedState) -> tuple[TableOfRule, int]:
    return _table(state), state.number


class StateFeed:
    """Watch of the published state in the operator's namespace."""

    def __init__(self, client: Client, namespace: str, sink: StateSink) -> None:
        where = ObjectRef(CONFIG_MAPS.resource, namespace)
        self.sink: Final = sink
        self._watches = ReflectorSet()
        self.reflector: Final[Reflector[ListedState]] = Reflector(
            client, where, decode=read_state, sink=sink, query={"labelSelector": LABEL}, page=_PAGE, piece=1
        )

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Return the watch by its name, once a policy that serves, or has served, learns."""
        return self._watches.reflectors

    @property
    def is_listed(self) -> bool:
        """Return whether all that is published is known."""
        return self.reflector.state.synced

    async def follow(self, rules: Sequence[AnyRule], *, wait: bool) -> None:
        """Watch if there are rules that learn; return at once, or if `wait`, once what they have learned is listed."""
        self.sink.set_rules(rules)
        if rules:
            self._watches.want({"learned state": lambda: self.reflector})
            if wait:
                await self.reflector.wait_until_listed()

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        await self._watches.run()

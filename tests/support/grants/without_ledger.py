"""`fairlead serve` as if there were no ledger: each replica grants by what it remembers. For comparison only."""

import sys

from fairlead.cli.main import main
from fairlead.grants.batch import Ledgers, LeftS
from fairlead.grants.commit import Answer, Granted, GrantRequest, plan
from fairlead.grants.entry import AnyEntry, Entry
from fairlead.grants.ledger import Ledger
from fairlead.grants.over import EntryState, judge
from fairlead.grants.server import Failed

_memory: dict[str, dict[str, Entry]] = {}


async def _commit(self: Ledgers, node: str, request: GrantRequest, left_s: LeftS) -> Answer | Failed:
    views = self._views
    entries = _memory.setdefault(node, {})

    def state_of(uid: str, entry: AnyEntry) -> EntryState:
        state = judge(uid, entry, node, views.seen(uid, entry.pod if isinstance(entry, Entry) else ""))
        return EntryState.HOLDS if state is EntryState.UNCLEAR else state

    made = plan(Ledger(node, "", "1", dict(entries)), [request], views.node(node), state_of)
    for uid in made.drop:
        entries.pop(uid, None)
    entries.update(made.put)
    (answer,) = made.answers
    return Granted(answer.entry) if isinstance(answer, Granted) else answer


if __name__ == "__main__":
    Ledgers.commit = _commit  # type: ignore[method-assign]
    sys.exit(main())

"""`fairlead serve` as if there were no ledger: each replica grants by what it remembers. For comparison only."""

import sys

from fairlead.cli.main import main
from fairlead.grants.commit import Accepted, Answer, GrantRequest, plan
from fairlead.grants.entry import LedgerEntry
from fairlead.grants.entry_state import EntryState, judge
from fairlead.grants.ledger import Ledger
from fairlead.webhook.binding.api_calls import Failed, TimeLeft
from fairlead.webhook.binding.ledger_writer import LedgerWriter

_memory: dict[str, dict[str, LedgerEntry]] = {}


async def _commit(
    self: LedgerWriter[GrantRequest], node: str, request: GrantRequest, left_s: TimeLeft
) -> Answer | Failed:
    views = self._views
    entries = _memory.setdefault(node, {})

    def state_of(uid: str, entry: LedgerEntry) -> EntryState:
        state = judge(uid, entry, node, views.seen(uid, entry.pod))
        return EntryState.HOLDS if state is EntryState.UNCLEAR else state

    states = {uid: state_of(uid, entry) for uid, entry in entries.items()}
    made = plan(Ledger(node, "", "1", dict(entries)), [request], views.facts(node), states)
    for uid in made.drop:
        entries.pop(uid, None)
    entries.update(made.put)
    (answer,) = made.answers
    return Accepted(answer.entry) if isinstance(answer, Accepted) else answer


if __name__ == "__main__":
    LedgerWriter.commit = _commit  # type: ignore[assignment, method-assign]
    sys.exit(main())

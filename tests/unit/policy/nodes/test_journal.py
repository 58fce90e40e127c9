"""Bounds of the journal."""

import pytest

from fairlead.policy.nodes.journal import Journal, JournalEntry
from fairlead.policy.nodes.measured_table import Published

PUBLISHED = Published(frozenset(), bytes(100))
ENTRY = JournalEntry(0, None)


@pytest.mark.parametrize(
    ("entries", "kept"),
    [
        ([ENTRY] * 10, 10),
        ([ENTRY] * 11, 5),
        ([PUBLISHED] * 5, 5),
        ([PUBLISHED] * 6, 3),
        ([PUBLISHED] * 9, 3),
        ([PUBLISHED, *[ENTRY] * 5, *[PUBLISHED] * 5], 5),
        ([*[PUBLISHED] * 5, *[ENTRY] * 6, *[PUBLISHED] * 5], 10),
    ],
    ids=str,
)
def test_the_older_half_is_dropped_beyond_the_entries_or_bytes(entries: list[JournalEntry], kept: int) -> None:
    journal = Journal(entries_max=10, masks_max=500)
    for entry in entries:
        journal.append(entry)
    assert (len(journal.entries), journal.head) == (kept, len(entries))
    assert [*(journal.since(journal.start) or ())] == entries[-kept:]
    assert journal.since(journal.start - 1) is None

"""How long what nobody needs any more is kept."""

import pytest

from fairlead.control.decide.retention import SCHEDULER_S, VERB_S, RetentionState, retained_wiring, retention_decision
from fairlead.render.extenders import Wiring

NOW = 10_000.0
PLAIN, SCORES, BOTH = Wiring(fails=True), Wiring(scores=True), Wiring(fails=True, scores=True)
BRIEF, LONG = (Wiring(fails=True, binds=True, hold_s=hold_s) for hold_s in (30, 90))


@pytest.mark.parametrize(
    ("uses", "before", "wiring", "after", "again"),
    [
        pytest.param(PLAIN, RetentionState(), PLAIN, RetentionState(wiring=PLAIN), None, id="the first time"),
        pytest.param(BOTH, RetentionState(wiring=PLAIN), BOTH, RetentionState(wiring=BOTH), None, id="more, at once"),
        pytest.param(LONG, RetentionState(wiring=BRIEF), LONG, RetentionState(wiring=LONG), None, id="longer, at once"),
        pytest.param(
            BRIEF,
            RetentionState(wiring=LONG),
            LONG,
            RetentionState(wiring=LONG, narrower_since=NOW),
            VERB_S,
            id="not so long, later",
        ),
        pytest.param(
            PLAIN,
            RetentionState(wiring=BOTH),
            BOTH,
            RetentionState(wiring=BOTH, narrower_since=NOW),
            VERB_S,
            id="less, later",
        ),
        pytest.param(
            PLAIN,
            RetentionState(wiring=BOTH, narrower_since=NOW - 50),
            BOTH,
            RetentionState(wiring=BOTH, narrower_since=NOW - 50),
            VERB_S - 50,
            id="less, soon",
        ),
        pytest.param(
            PLAIN,
            RetentionState(wiring=BOTH, narrower_since=NOW - VERB_S),
            PLAIN,
            RetentionState(wiring=PLAIN),
            None,
            id="less, now",
        ),
        pytest.param(
            BOTH,
            RetentionState(wiring=BOTH, narrower_since=NOW - 5),
            BOTH,
            RetentionState(wiring=BOTH),
            None,
            id="renamed in time",
        ),
        pytest.param(
            SCORES,
            RetentionState(wiring=PLAIN),
            BOTH,
            RetentionState(wiring=BOTH, narrower_since=NOW),
            VERB_S,
            id="one verb comes and another goes",
        ),
        pytest.param(
            None,
            RetentionState(wiring=BOTH, narrower_since=NOW - 99, empty_since=NOW - 99),
            BOTH,
            RetentionState(wiring=BOTH, narrower_since=NOW - 99, empty_since=NOW - 99),
            SCHEDULER_S - 99,
            id="without policies nothing rolls for as long as they may come back",
        ),
        pytest.param(
            None,
            RetentionState(),
            Wiring(),
            RetentionState(wiring=Wiring(), empty_since=NOW),
            None,
            id="listed, and no policy yet",
        ),
        pytest.param(
            BOTH,
            RetentionState(wiring=BOTH, narrower_since=NOW - 99, empty_since=NOW - 99),
            BOTH,
            RetentionState(wiring=BOTH),
            None,
            id="the only policy is back",
        ),
    ],
)
def test_the_wiring_that_is_needed(
    uses: Wiring | None, before: RetentionState, wiring: Wiring, after: RetentionState, again: float | None
) -> None:
    found = retained_wiring(uses, before, NOW)
    assert (found.wiring, found.retention, found.requeue_after_s) == (wiring, after, again)


@pytest.mark.parametrize(
    ("listed", "empty_for", "unbound", "fate", "why"),
    [
        (True, SCHEDULER_S, 0, "Keep", ""),
        (False, None, 0, "Keep", ""),
        (False, 590.0, 0, "Retain", "will be deleted in 10 s"),
        (False, SCHEDULER_S, 3, "Retain", "3 pending pods"),
        (False, SCHEDULER_S, 0, "Delete", "no pending pod"),
    ],
)
def test_when_a_scheduler_goes(*, listed: bool, empty_for: float | None, unbound: int, fate: str, why: str) -> None:
    lasting = RetentionState(empty_since=None if empty_for is None else NOW - empty_for)
    found = retention_decision(listed=listed, retention=lasting, pending_pods=unbound, now=NOW)
    assert found[0] == fate
    assert why in found[1]

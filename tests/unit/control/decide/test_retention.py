"""How long what nobody needs any more is kept."""

import pytest

from fairlead.control.decide.retention import SCHEDULER_S, VERB_S, Lasting, goes, needed
from fairlead.render.extenders import Wiring

NOW = 10_000.0
PLAIN, SCORES, BOTH = Wiring(fails=True), Wiring(scores=True), Wiring(fails=True, scores=True)


@pytest.mark.parametrize(
    ("uses", "before", "wiring", "after", "again"),
    [
        pytest.param(PLAIN, Lasting(), PLAIN, Lasting(wiring=PLAIN), None, id="the first time"),
        pytest.param(BOTH, Lasting(wiring=PLAIN), BOTH, Lasting(wiring=BOTH), None, id="more, at once"),
        pytest.param(
            PLAIN, Lasting(wiring=BOTH), BOTH, Lasting(wiring=BOTH, narrower_since=NOW), VERB_S, id="less, later"
        ),
        pytest.param(
            PLAIN,
            Lasting(wiring=BOTH, narrower_since=NOW - 50),
            BOTH,
            Lasting(wiring=BOTH, narrower_since=NOW - 50),
            VERB_S - 50,
            id="less, soon",
        ),
        pytest.param(
            PLAIN, Lasting(wiring=BOTH, narrower_since=NOW - VERB_S), PLAIN, Lasting(wiring=PLAIN), None, id="less, now"
        ),
        pytest.param(
            BOTH, Lasting(wiring=BOTH, narrower_since=NOW - 5), BOTH, Lasting(wiring=BOTH), None, id="renamed in time"
        ),
        pytest.param(
            SCORES,
            Lasting(wiring=PLAIN),
            BOTH,
            Lasting(wiring=BOTH, narrower_since=NOW),
            VERB_S,
            id="one verb comes and another goes",
        ),
        pytest.param(
            None,
            Lasting(wiring=BOTH, narrower_since=NOW - 99, empty_since=NOW - 99),
            BOTH,
            Lasting(wiring=BOTH, narrower_since=NOW - 99, empty_since=NOW - 99),
            SCHEDULER_S - 99,
            id="without policies nothing rolls for as long as they may come back",
        ),
        pytest.param(
            None, Lasting(), Wiring(), Lasting(wiring=Wiring(), empty_since=NOW), None, id="listed, and no policy yet"
        ),
        pytest.param(
            BOTH,
            Lasting(wiring=BOTH, narrower_since=NOW - 99, empty_since=NOW - 99),
            BOTH,
            Lasting(wiring=BOTH),
            None,
            id="the only policy is back",
        ),
    ],
)
def test_the_wiring_that_is_needed(
    uses: Wiring | None, before: Lasting, wiring: Wiring, after: Lasting, again: float | None
) -> None:
    found = needed(uses, before, NOW)
    assert (found.wiring, found.lasting, found.again_s) == (wiring, after, again)


@pytest.mark.parametrize(
    ("listed", "empty_for", "unbound", "fate", "why"),
    [
        (True, SCHEDULER_S, 0, "Stays", ""),
        (False, None, 0, "Stays", ""),
        (False, 590.0, 0, "Waits", "goes in 10 s"),
        (False, SCHEDULER_S, 3, "Waits", "3 pods"),
        (False, SCHEDULER_S, 0, "Goes", "no pod waits"),
    ],
)
def test_when_a_scheduler_goes(*, listed: bool, empty_for: float | None, unbound: int, fate: str, why: str) -> None:
    lasting = Lasting(empty_since=None if empty_for is None else NOW - empty_for)
    found = goes(listed=listed, lasting=lasting, unbound=unbound, now=NOW)
    assert found[0] == fate
    assert why in found[1]

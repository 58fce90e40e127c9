"""Which configuration a scheduler is to run."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.control.decide.rollout import (
    VERIFIED_WITHIN_S,
    RolloutAttempt,
    RolloutPhase,
    RolloutState,
    RolloutStep,
    next_step,
)
from fairlead.control.decide.rollout_observation import RolloutObservation

NOW = 1000.0
FINE = RolloutObservation(config="new", has_lease=True, probe_failure="")
TRYING = RolloutAttempt(config="new", inputs="1", since=NOW - 10)
REJECTED = replace(TRYING, why="bad plugin", since=NOW - 100)
OLD = RolloutState(last_good="old")


@pytest.mark.parametrize(
    ("memory", "seen", "config", "phase", "message", "after"),
    [
        pytest.param(
            RolloutState(),
            RolloutObservation(),
            "new",
            "Rolling",
            "being updated",
            RolloutState(candidate=replace(TRYING, since=NOW)),
            id="nothing is there",
        ),
        pytest.param(
            OLD,
            RolloutObservation(config="old"),
            "new",
            "Rolling",
            "being updated",
            replace(OLD, candidate=replace(TRYING, since=NOW)),
            id="another one is wanted",
        ),
        pytest.param(
            replace(OLD, candidate=TRYING),
            replace(FINE, pending_reason="1 of 2 pods is ready"),
            "new",
            "Rolling",
            "1 of 2 pods is ready",
            replace(OLD, candidate=TRYING),
            id="it rolls",
        ),
        pytest.param(
            replace(OLD, candidate=TRYING),
            replace(FINE, has_lease=False),
            "new",
            "Rolling",
            "none of its pods holds the Lease",
            replace(OLD, candidate=TRYING),
            id="nobody leads",
        ),
        pytest.param(
            replace(OLD, candidate=TRYING),
            replace(FINE, probe_failure=None),
            "new",
            "Rolling",
            "have not been called",
            replace(OLD, candidate=TRYING),
            id="not called yet",
        ),
        pytest.param(
            replace(OLD, candidate=TRYING),
            replace(FINE, probe_failure="/filter: 403"),
            "new",
            "Rolling",
            "/filter: 403",
            replace(OLD, candidate=TRYING),
            id="not answered",
        ),
        pytest.param(
            replace(OLD, candidate=TRYING),
            replace(FINE, errors="x509: unknown authority"),
            "new",
            "Rolling",
            "x509",
            replace(OLD, candidate=TRYING),
            id="errors since the roll",
        ),
        pytest.param(
            replace(OLD, candidate=TRYING), FINE, "new", "Steady", "", RolloutState(last_good="new"), id="verified"
        ),
        pytest.param(
            replace(OLD, candidate=TRYING),
            replace(FINE, failure="no plugin x"),
            "old",
            "RolledBack",
            "configuration new is rejected: no plugin x; rolling back to the last good one, old",
            replace(OLD, rejected=replace(TRYING, why="no plugin x", since=NOW)),
            id="it fails",
        ),
        pytest.param(
            RolloutState(candidate=TRYING),
            replace(FINE, failure="no plugin x"),
            "new",
            "Rejected",
            "configuration new is rejected: no plugin x",
            RolloutState(rejected=replace(TRYING, why="no plugin x", since=NOW)),
            id="the first one fails",
        ),
        pytest.param(
            RolloutState(rejected=REJECTED),
            replace(FINE, has_lease=False),
            "new",
            "Rejected",
            "configuration new is rejected: bad plugin",
            RolloutState(rejected=REJECTED),
            id="the first one is not there yet",
        ),
        pytest.param(
            RolloutState(rejected=REJECTED),
            FINE,
            "new",
            "Steady",
            "",
            RolloutState(last_good="new"),
            id="the first one comes late",
        ),
        pytest.param(
            replace(OLD, candidate=replace(TRYING, since=NOW - VERIFIED_WITHIN_S)),
            replace(FINE, has_lease=False),
            "old",
            "RolledBack",
            "not verified within 180 s: none of its pods holds the Lease",
            replace(
                OLD,
                rejected=replace(TRYING, why="not verified within 180 s: none of its pods holds the Lease", since=NOW),
            ),
            id="too late",
        ),
        pytest.param(
            replace(OLD, rejected=REJECTED),
            RolloutObservation(config="old", has_lease=True),
            "old",
            "RolledBack",
            "bad plugin; rolled back to the last good one, old",
            replace(OLD, rejected=REJECTED),
            id="put away, and not tried again",
        ),
        pytest.param(
            replace(OLD, rejected=replace(REJECTED, inputs="0")),
            RolloutObservation(config="old"),
            "new",
            "Rolling",
            "being updated",
            replace(OLD, candidate=replace(TRYING, since=NOW)),
            id="tried again once something changed",
        ),
        pytest.param(
            RolloutState(last_good="new"), FINE, "new", "Steady", "", RolloutState(last_good="new"), id="nothing to do"
        ),
        pytest.param(
            RolloutState(last_good="new"),
            replace(FINE, probe_failure="/filter: timeout", has_lease=False, errors="E"),
            "new",
            "Steady",
            "",
            RolloutState(last_good="new"),
            id="what was verified stays so",
        ),
        pytest.param(
            RolloutState(last_good="new"),
            RolloutObservation(),
            "new",
            "Steady",
            "being restored",
            RolloutState(last_good="new"),
            id="it was deleted",
        ),
        pytest.param(
            RolloutState(last_good="new", candidate=replace(TRYING, config="newer")),
            RolloutObservation(config="newer"),
            "new",
            "Steady",
            "being restored",
            RolloutState(last_good="new"),
            id="a person took it back before it was verified",
        ),
    ],
)
def test_a_pass(
    memory: RolloutState, seen: RolloutObservation, config: str, phase: RolloutPhase, message: str, after: RolloutState
) -> None:
    found = next_step("new", "1", memory, seen, NOW)
    assert (found.config, found.phase, found.state) == (config, phase, after)
    assert message in found.message
    assert bool(message) == bool(found.message)


def test_an_edit_that_changes_nothing_of_it_does_not_extend_the_time_of_a_roll() -> None:
    found = next_step("new", "2", replace(OLD, candidate=TRYING), replace(FINE, has_lease=False), NOW)
    assert found.state.candidate == replace(TRYING, inputs="2")


SEEN = st.builds(
    RolloutObservation,
    config=st.sampled_from(["", "a", "b", "c"]),
    pending_reason=st.sampled_from(["", "waits"]),
    failure=st.sampled_from(["", "failed"]),
    has_lease=st.booleans(),
    probe_failure=st.sampled_from([None, "", "403"]),
    errors=st.sampled_from(["", "E"]),
)
PASSES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("12"), SEEN, st.floats(0, 100)), min_size=1, max_size=40
)


@given(PASSES)
def test_whatever_is_seen(passes: list[tuple[str, str, RolloutObservation, float]]) -> None:
    """What runs is wanted or good; only what was verified is good; what was put away stays so until inputs change."""
    memory, now, verified = RolloutState(), NOW, {""}
    for wanted, inputs, seen, later in passes:
        now += later
        before = memory
        found: RolloutStep = next_step(wanted, inputs, before, seen, now)
        assert found.config in {wanted, before.last_good, found.state.last_good}
        if runs := seen.config == wanted and not seen.failure and not seen.missing:
            verified.add(wanted)
        assert found.state.last_good in verified
        if (old := before.rejected) and (old.config, old.inputs) == (wanted, inputs) and (before.last_good or not runs):
            assert found.state == before
            assert found.config == (before.last_good or wanted)
        # a pass whose writes all failed is followed by one that ends the same
        assert next_step(wanted, inputs, before, seen, now) == found
        memory = found.state

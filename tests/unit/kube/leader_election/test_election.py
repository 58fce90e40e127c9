"""What is next, case by case. That two never lead at once is in test_election_property."""

import dataclasses

import pytest

from fairlead.kube.leader_election.election import (
    Done,
    Election,
    ElectionStep,
    LeaseTimings,
    Read,
    Record,
    Release,
    Resign,
    Wait,
    Write,
)

NEW = Election("me")
OTHERS = Record("5", "other", 15)
RELEASED = Record("5", "", 1, transitions=3)
OURS = Record("6", "me", 15, transitions=4)
SEEN = NEW.after_read(OTHERS, 100)
LEADING = NEW.after_read(RELEASED, 99).after_write(OURS, 100, 101)


@pytest.mark.parametrize(
    ("case", "election", "now", "step"),
    [
        ("the first thing is to look", NEW, 0, Read()),
        ("there is none: it may have been deleted just now", NEW.after_read(None, 100), 100, Wait(2)),
        ("and it is made when whoever had it acts no more", NEW.after_read(None, 100), 115, Write("", 0, taking=True)),
        ("it was released: it is taken", NEW.after_read(RELEASED, 100), 100, Write("5", 4, taking=True)),
        ("another has it: look again later", SEEN, 100, Wait(2)),
        ("then look again", SEEN, 102, Read()),
        ("it runs out between two looks", SEEN.after_read(OTHERS, 114), 114, Wait(1)),
        ("it has run out", SEEN.after_read(OTHERS, 114), 115, Write("5", 1, taking=True)),
        ("a change is a sign of life", SEEN.after_read(dataclasses.replace(OTHERS, version="6"), 114), 128.5, Read()),
        (
            "others keep to their own terms",
            NEW.after_read(Record("5", "other", 60), 100).after_read(None, 159),
            159,
            Wait(2),
        ),
        (
            "terms that make no sense are ours",
            NEW.after_read(Record("5", "other", 0), 100),
            115,
            Write("5", 1, taking=True),
        ),
        ("what failed is tried again later", SEEN.failed(115), 116, Wait(1)),
        ("after a failure nothing is written unseen", SEEN.failed(115), 117, Read()),
        ("it is ours, from before a restart", NEW.after_read(OURS, 100), 100, Write("6", 4, taking=True)),
        ("it was deleted: its holder may act still", SEEN.after_read(None, 110), 110, Wait(2)),
        ("and it was for as long as it would have had", SEEN.after_read(None, 110), 125, Write("", 0, taking=True)),
        (
            "what was released may be taken and then deleted",
            NEW.after_read(RELEASED, 90).after_read(None, 100),
            100,
            Wait(2),
        ),
        (
            "by somebody who acts no more",
            NEW.after_read(RELEASED, 90).after_read(None, 100),
            115,
            Write("", 0, taking=True),
        ),
        ("a leader rests", LEADING, 101, Wait(1)),
        ("a leader renews", LEADING, 102, Write("6", 4, taking=False)),
        ("a leader whose renewal failed looks", LEADING.failed(102), 104, Read()),
        ("and renews at once", LEADING.failed(102).after_read(OURS, 104), 104, Write("6", 4, taking=False)),
        ("up to the end of its time", LEADING.failed(109), 109.5, Wait(0.5)),
        ("which counts from when it asked", LEADING, 110, Resign()),
        ("a leader puts back what was deleted", LEADING.after_read(None, 103), 103, Write("", 0, taking=False)),
        ("a leader that sees another one is none", LEADING.after_read(OTHERS, 103), 103, Resign()),
        ("a candidate again", LEADING.resigned(110), 110, Wait(2)),
        (
            "that may take what nobody else took",
            LEADING.resigned(110).after_read(OURS, 112),
            112,
            Write("6", 4, taking=True),
        ),
        (
            "a Lease that is had too late is taken again",
            SEEN.after_write(OURS, 100, 110),
            110,
            Write("6", 4, taking=True),
        ),
    ],
)
def test_what_is_next(case: str, election: Election, now: float, step: ElectionStep) -> None:
    assert election.next(now, ended=True, stopping=False) == step, case


@pytest.mark.parametrize(
    ("case", "election", "now", "step"),
    [
        ("it takes nothing", NEW.after_read(None, 100), 100, Wait(2)),
        ("nor what has run out", SEEN, 120, Read()),
        ("a leader renews", LEADING, 102, Write("6", 4, taking=False)),
    ],
)
def test_while_something_goes_on_of_what_a_leader_began(
    case: str, election: Election, now: float, step: ElectionStep
) -> None:
    assert election.next(now, ended=False, stopping=False) == step, case


@pytest.mark.parametrize(
    ("case", "election", "ended", "now", "step"),
    [
        ("a candidate leaves", SEEN, True, 100, Done()),
        ("also before it has looked", NEW, False, 100, Done()),
        ("a leader goes on until all has ended", LEADING, False, 102, Write("6", 4, taking=False)),
        ("and rests in between", LEADING, False, 101, Wait(1)),
        ("or until its time is over", LEADING, False, 110, Resign()),
        ("then it releases", LEADING, True, 101, Release("6", 4)),
        ("but nothing that may be another's by now", LEADING.failed(102), True, 102, Done()),
    ],
)
def test_while_stopping(case: str, election: Election, ended: bool, now: float, step: ElectionStep) -> None:
    assert election.next(now, ended=ended, stopping=True) == step, case


def test_others_wait_for_longer_than_a_leader_acts_on_clocks_that_run_a_third_apart() -> None:
    assert LeaseTimings().lease_s >= 1.3 * LeaseTimings().act_s
    assert LeaseTimings().lease_s + LeaseTimings().retry_s < 20

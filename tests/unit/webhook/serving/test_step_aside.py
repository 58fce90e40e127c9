"""A replica steps aside while it is asked to and lacks values, but not for ever."""

from dataclasses import dataclass, field

import pytest

from fairlead.webhook.serving.step_aside import ASKED_S, LONGEST_S, REST_S, StepAside

LOAD = "load (prometheus default)"


@dataclass
class Replica:
    lacking: list[str] = field(default_factory=lambda: [LOAD])
    seconds: float = 100.0
    changes: list[str] = field(default_factory=list)
    state: StepAside = field(init=False)

    def __post_init__(self) -> None:
        self.state = StepAside(lambda: self.lacking, self.changes.append, lambda: self.seconds)

    @property
    def is_aside(self) -> bool:
        return bool(self.changes and self.changes[-1])

    def pass_time(self, seconds: float, *, asked: bool = False) -> bool:
        """Let time pass in steps; return whether it is aside then."""
        end = self.seconds + seconds
        while self.seconds < end:
            self.seconds = min(self.seconds + 1.0, end)
            if asked:
                self.state.ask()
            self.state.check()
        return self.is_aside


@pytest.fixture
def replica() -> Replica:
    return Replica()


def test_it_says_why_it_is_aside(replica: Replica) -> None:
    replica.state.ask()
    replica.state.ask()
    assert replica.changes == [
        "stepped aside, because other replicas have the values of load (prometheus default), and this one has none"
    ]


def test_it_does_not_if_it_lacks_nothing(replica: Replica) -> None:
    replica.lacking = []
    replica.state.ask()
    assert not replica.changes


def test_it_comes_back_with_its_values(replica: Replica) -> None:
    replica.state.ask()
    replica.lacking = []
    assert not replica.pass_time(1)
    assert [*map(bool, replica.changes)] == [True, False]


def test_a_request_ends_by_itself(replica: Replica) -> None:
    replica.state.ask()
    assert replica.pass_time(ASKED_S - 1)
    assert not replica.pass_time(1)
    replica.state.ask()
    assert replica.is_aside, "a new one counts at once"


def test_it_comes_back_when_the_leader_asks_no_more(replica: Replica) -> None:
    replica.state.ask()
    replica.state.end()
    assert not replica.is_aside
    replica.state.ask()
    assert replica.is_aside


def test_it_comes_back_after_the_longest_time_and_stays_for_a_while(replica: Replica) -> None:
    replica.state.ask()
    assert replica.pass_time(LONGEST_S - 1, asked=True)
    assert not replica.pass_time(1, asked=True)
    assert not replica.pass_time(REST_S - 1, asked=True)
    assert replica.pass_time(2, asked=True)
    assert [*map(bool, replica.changes)] == [True, False, True]

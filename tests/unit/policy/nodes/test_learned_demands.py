"""Learned requests: the newest of them, as a rule reads them."""

import pytest

from fairlead.policy.nodes.learned_demands import LearnedRequests
from fairlead.policy.nodes.learned_tables import TableOfRule
from fairlead.strategies.reads import DemandsRead

READ = DemandsRead(("cpu",), 2, (0.0,))
RULE = TableOfRule("u-p", "pack", READ.meaning)
PODS = {(1, "a"): (9.0,), (3, "c"): (1.0,), (2, "b"): (2.0,)}


@pytest.mark.parametrize(
    ("read", "mean"),
    [
        (READ, 1.5),
        (DemandsRead(("cpu",), 3, (0.0,)), 4.0),
        (DemandsRead(("cpu",), 2, (2.0,)), 2.0),
        (DemandsRead(("memory",), 2, (0.0,)), 0.0),
    ],
    ids=["as it was published", "more samples", "a floor", "another meaning"],
)
def test_the_newest_pods_count(read: DemandsRead, mean: float) -> None:
    requests = LearnedRequests()
    requests.keep({RULE: READ})
    requests.put(RULE, PODS)
    assert requests("u-p", "pack", read).mean == (mean,)


def test_an_edit_of_the_floor_keeps_what_was_learned() -> None:
    requests = LearnedRequests()
    requests.keep({RULE: READ})
    requests.put(RULE, PODS)
    edited = DemandsRead(("cpu",), 2, (2.0,))
    requests.keep({RULE: edited})
    assert (requests("u-p", "pack", edited).mean, requests.pods(RULE)) == ((2.0,), 3)
    requests.keep({})
    assert requests.pods(RULE) == 0

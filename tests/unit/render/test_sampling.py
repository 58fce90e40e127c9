from collections.abc import Mapping

import pytest

from fairlead.render.cluster_facts import percentage, samples_all_nodes
from fairlead.render.extenders import Wiring
from fairlead.render.templates import read
from support.render.schedulers import config_of, facts, planned

SHARES: Mapping[tuple[str, int | None, bool | None], int | None] = {
    ("Auto", 0, None): 100,
    ("Auto", 1000, None): 100,
    ("Auto", 1001, None): None,
    ("Auto", 1000, True): 100,
    ("Auto", 1001, True): None,
    ("Auto", 1000, False): None,
    ("Auto", 801, False): None,
    ("Auto", 800, False): 100,
    ("Auto", None, None): 100,
    ("Auto", None, True): 100,
    ("Auto", None, False): None,
    ("1%", 10, None): 1,
    ("1%", None, None): 1,
    ("100%", 10_000, False): 100,
    ("30%", 10, True): 30,
}


@pytest.mark.parametrize("case", SHARES)
def test_how_many_nodes_are_asked(case: tuple[str, int | None, bool | None]) -> None:
    assert percentage(*case) == SHARES[case]


@pytest.mark.parametrize(("wanted", "share"), [("Auto", 100), ("30%", 30)])
def test_a_policy_that_needs_all_nodes_has_auto_ask_about_all(wanted: str, share: int) -> None:
    assert percentage(wanted, 5000, False, asks_all=True) == share
    assert read(config_of(planned(Wiring(asks_all=True), facts(nodes=5000))))["percentageOfNodesToScore"] == 100


def test_a_cluster_that_breathes_around_a_thousand_nodes_changes_its_scheduler_once() -> None:
    texts, before = [], None
    for nodes in (990, 1010, 990, 1010, 850, 1010, 900):
        made = planned(cluster=facts(nodes=nodes, asked_all=before))
        before = samples_all_nodes(read(config_of(made)))
        texts.append(config_of(made))
    assert [texts[0], *[texts[1]] * 6] == texts
    assert texts[0] != texts[1]


def test_what_a_setting_said_before_does_not_count_for_auto() -> None:
    assert samples_all_nodes(None) is None
    assert samples_all_nodes(read(config_of(planned(nodeSample="30%")))) is None
    assert samples_all_nodes(read(config_of(planned()))) is True
    assert samples_all_nodes(read(config_of(planned(cluster=facts(nodes=5000))))) is False

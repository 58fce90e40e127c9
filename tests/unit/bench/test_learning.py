"""What is pure of the guide's experiments with rules that learn."""

import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest

from bench import page
from bench.learning import bursts, demo, packing, tables, trials
from bench.learning.__main__ import PAGE, REAL, SIMULATED, begin_of, end_of
from bench.learning.demo import Placed, Seen
from bench.learning.intervals import mean
from bench.learning.line_chart import chart
from bench.learning.packing import LARGE, SMALL, Packing
from bench.learning.simulated_scheduler import (
    GIB,
    Amounts,
    SimulatedPod,
    SimulatedScheduler,
    balanced_allocation,
    least_allocated,
    most_allocated,
)
from bench.learning.trials import Trial
from testbed.kwok import STAGES

NODE = Amounts(16_000, 64 * GIB)


_OWN_SCORES = {
    # requested before and with the pod: (free cpu + free memory) / 2, (used cpu + used memory) / 2, balance
    "an empty node": (Amounts(0, 0), Amounts(8_000, 32 * GIB), 50, 50, 75),
    "shares are cut before their mean": (Amounts(0, 0), Amounts(1_000, 5 * GIB), (93 + 92) // 2, (6 + 7) // 2, 74),
    "a full node": (Amounts(8_000, 32 * GIB), Amounts(16_000, 64 * GIB), 0, 100, 75),
    # |0.5 - 0| / 2 = 0.25 before, 0 with the pod: 100 - 75 = 25 better
    "the pod balances": (Amounts(8_000, 0), Amounts(8_000, 32 * GIB), 50, 50, 87),
    "the pod unbalances": (Amounts(0, 0), Amounts(8_000, 0), 75, 25, 62),
}


@pytest.mark.parametrize(("before", "after", "least", "most", "balanced"), _OWN_SCORES.values(), ids=_OWN_SCORES)
def test_own_scores_are_those_of_the_scheduler(
    before: Amounts, after: Amounts, least: int, most: int, balanced: int
) -> None:
    found = least_allocated(after, NODE), most_allocated(after, NODE), balanced_allocation(before, after, NODE)
    assert found == (least, most, balanced)


def test_a_pod_takes_its_node_and_gives_it_back() -> None:
    made = SimulatedScheduler(["a", "b"], NODE)
    first, second, third = (SimulatedPod(uid, Amounts(10_000, GIB)) for uid in "123")
    homes = [made.place(first, 0.0), made.place(second, 0.0)]
    assert sorted(map(str, homes)) == ["a", "b"]
    assert made.place(third, 0.0) is None
    made.remove(first, str(homes[0]))
    assert made.place(third, 0.0) == homes[0]


def test_points_of_a_policy_outweigh_the_schedulers_own() -> None:
    rule = {"name": "b", "weight": 5, "expression": "node.metadata.name == 'b' ? 100.0 : 0.0"}
    made = SimulatedScheduler(["a", "b"], NODE, scores=[rule])
    pods = [SimulatedPod(str(at), Amounts(1_000, 4 * GIB)) for at in range(10)]
    assert {made.place(one, 0.0) for one in pods} == {"b"}
    assert made.of_policy(pods[0], ["a", "b"], 0.0) == [0, 50]


def test_arrivals_are_the_same_for_all_rules_and_other_ones_with_another_seed() -> None:
    first = packing.arrivals("mixed", 0, 300)
    assert first == packing.arrivals("mixed", 0, 300)
    assert first != packing.arrivals("mixed", 1, 300)
    assert {one.pod.request for one in first} == {SMALL, LARGE}
    assert {one.pod.request for one in packing.arrivals("equal", 0, 300)} == {packing.EQUAL}
    mixed = packing.arrivals("mixed", 0, 20_000)
    assert fmean(one.pod.request.cpu for one in mixed) == pytest.approx(packing.EQUAL.cpu, rel=0.05)
    assert fmean(one.lasts_s for one in mixed) == pytest.approx(packing.LASTS_S, rel=0.05)


def test_room_is_what_fits_by_cpu_and_memory() -> None:
    free = [Amounts(16_000, 40 * GIB), Amounts(7_999, 64 * GIB), Amounts(8_000, 32 * GIB)]
    assert packing.room_for(LARGE, free) == 2


def test_pods_that_do_not_fit_wait_until_others_end() -> None:
    pod = SimulatedPod("p", NODE)
    coming = [packing.ComingPod(float(at), 100.0, pod._replace(uid=f"p{at}")) for at in range(packing.NODES)]
    coming += [packing.ComingPod(60.0, 100.0, pod._replace(uid="waits"))]
    coming += [packing.ComingPod(500.0, 100.0, pod._replace(uid="does-not"))]
    found = packing.run(packing.Rules(), coming, len(coming), 0)
    assert found.waited == pytest.approx(1 / len(coming))
    assert (found.fullest, found.room) == (1.0, 2 * (packing.NODES - 1))


def test_pigeon_packs_a_mixture_and_spreads_equal_pods() -> None:
    mixed, equal = ({name: packing.run(rules, packing.arrivals(kind, 0, 300), 100, 0)
                     for name, rules in packing.RULES.items()} for kind in packing.ARRIVALS)  # fmt: skip
    assert mixed["pigeon"].deviation > 2 * mixed["LeastAllocated"].deviation
    assert equal["pigeon"].deviation < equal["MostAllocated"].deviation / 2


def test_a_burst_that_is_seen_at_once_is_placed_whole() -> None:
    found = bursts.simulated("pigeon", "equal", 0)
    assert found.deviation < bursts.simulated("MostAllocated", "equal", 0).deviation / 2
    assert found.most == bursts.MANY / packing.NODES


_FAILURES = {
    "at once after the first failure, then later and later": (0.0, 100.0, 10.0, [10.0, 20.0, 40.0, 70.0]),
    "each minute": (5.0, 330.0, 60.0, [65.0, 125.0, 195.0, 275.0]),
    "the pod ends first": (0.0, 9.0, 10.0, []),
    "at most five minutes later": (0.0, 1320.0, 1.0, [1.0, 2.0, 13.0, 34.0, 75.0, 156.0, 317.0, 618.0, 919.0, 1220.0]),
}


@pytest.mark.parametrize(("start", "end", "after", "want"), _FAILURES.values(), ids=_FAILURES)
def test_a_container_fails_again_after_the_back_off_of_the_kubelet(
    start: float, end: float, after: float, want: list[float]
) -> None:
    assert trials.failures(start, end, after) == want


def test_the_stage_of_kwok_waits_as_long() -> None:
    waits = [round(later - before) - 1 for before, later in pairwise(trials.failures(0, 3000, 1))]
    waits = waits[: waits.index(300)]
    assert f"{waits}[.restartCount] // 300" in STAGES.read_text()


def test_a_pod_tells_its_failures_or_that_it_has_settled() -> None:
    failed = [*trials.observations("p", "fails", "n", 0.0, [10.0, 20.0], 1800.0, 10.0)]
    assert [(one.at, one.reward) for one in failed] == [(10, 0.0), (20, 0.0)]
    late = [*trials.observations("p", "fails", "n", 0.0, [700.0], 1800.0, 700.0)]
    assert [(one.at, one.reward) for one in late] == [(700, 0.5), (600, 1.0)]
    assert [*trials.observations("p", "fails", "n", 0.0, [], 599.0, None)] == []
    assert len({one.id for one in (*failed, *late)}) == 4


def test_nodes_on_which_pods_fail_are_avoided_and_tried_again() -> None:
    found = trials.run(1, 0)
    without = trials.run(0, 0, days=0.2)
    assert found.share(1, 2) < 0.1 < 0.6 < without.share(1, 2)
    assert found.failures < without.failures / 3
    assert 3.0 < found.tried["1 min"] < found.tried["10 s"] < (found.shared_again or 0.0) < 24.0
    assert found.score_then["10 s"] > 90


def test_a_mean_has_an_interval_around_it() -> None:
    assert mean([2.0, 2.0]) == (2.0, 2.0, 2.0)
    found = mean([1.0, 2.0, 3.0, 4.0])
    assert 1.0 < found.low < found.value == 2.5 < found.high < 4.0
    assert found.text(".1f") == f"2.5 ({found.low:.1f} to {found.high:.1f})"


def test_failures_are_read_from_a_status() -> None:
    rows = [("running", 0, 0), ("terminated", 0, 1), ("running", 1, 1), ("terminated", 1, 2), ("waiting", 1, 2)]
    for state, restarts, want in rows:
        assert demo.failures_of({"containerStatuses": [{"state": {state: {}}, "restartCount": restarts}]}) == want
    assert demo.failures_of({}) == 0


def test_placements_are_shares_of_a_type_a_rule_and_a_time() -> None:
    where = ["10s", "10s", "60s", "never", "never", "never"]
    placed = {f"p{at}": Placed(10.0 * at, demo.WITH, "fails", kind) for at, kind in enumerate(where)}
    seen = Seen(placed | {"other": Placed(0.0, demo.WITHOUT, "fails", "60s")}, {"p0": 3, "other": 2})
    rows = tables.placements(seen, {"first": (0.0, 30.0), "last": (30.0, 60.0)})
    assert "| fails on two kinds | `kubeRL` | first | 67% | 33% | 0% |" in rows
    assert "| fails on two kinds | `kubeRL` | last | 0% | 0% | 100% |" in rows
    assert "| fails on two kinds | no rule | first | 0% | 100% | 0% |" in rows
    assert rows[-1] == "Containers failed 2 times with no rule, and 3 times with `kubeRL`."


def test_a_table_says_how_many_runs_ended_before_a_node_was_tried() -> None:
    hours = {0: (1, 2), 1: (0, 2)}
    each = [Trial(6, 10, hours, {"1 min": 40.0, "10 s": 50.0}, shared_again=60.0), Trial(6, 20, hours, {"1 min": 42.0})]
    others = [Trial(half, 5, hours, {"1 min": 1.0, "10 s": 2.0}, shared_again=3.0) for half in (0, 1, 24)]
    rows = tables.returns([*each, *others])
    want = "15 | 50% and 0% | 41 h (40 to 42) | later, in 1 of 2 runs | later, in 1 of 2 runs |"
    assert f"| `halfLife: 6h` | {want}" in rows
    assert "| no rule | 5 | 50% and 0% |  |  |  |" in rows


def test_tables_of_packing_and_bursts_have_means_with_intervals() -> None:
    packed = [Packing(room, 0.1, 0.5, 0.25, 1.0) for room in (2.0, 4.0)]
    assert tables.packings({"pigeon": packed})[-1].startswith(
        "| `pigeon`, `LeastAllocated` | 3.0 (2.0 to 4.0) | 10.0% (10.0% to 10.0%) | 50.0%"
    )
    burst = bursts.Burst(20.0, 0.3, 9.0, 2.0)
    row = tables.bursts({"pigeon": [burst]}, {"pigeon": [bursts.Burst(30.0, 0.1, 4.0, 0.0)]})[-1]
    assert "| 20.0 (20.0 to 20.0) | 30.0 | 0.300" in row
    assert row.endswith("| 9.0 (9.0 to 9.0) | 4.0 | 2.0 |")


def test_a_chart_has_a_line_and_a_name_for_each_kind_and_no_name_covers_another() -> None:
    lines = {"a": [(0, 100), (6, 50)], "b": [(0, 100), (6, 51)], "c": [(0, 0)]}
    drawn = ET.fromstring(chart("t", "hours", lines))  # noqa: S314  our own
    names = {one.text: float(one.get("y", "")) for one in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert len([*drawn.iter("{http://www.w3.org/2000/svg}polyline")]) == 3
    assert abs(names["a"] - names["b"]) >= 15


def test_figures_come_between_their_marks_and_nothing_else_changes(tmp_path: Path) -> None:
    written = tmp_path / "page.md"
    written.write_text(f"before\n{begin_of('demo')}\nold\n{end_of('demo')}\nafter\n")
    for _ in range(2):
        page.put_between(begin_of("demo"), ["new"], end_of("demo"), written)
        assert written.read_text() == f"before\n{begin_of('demo')}\n\nnew\n\n{end_of('demo')}\nafter\n"
    with pytest.raises(ValueError, match="has no"):
        page.put_between(begin_of("trials"), ["new"], end_of("trials"), written)


@pytest.mark.parametrize("name", [*SIMULATED, *REAL])
def test_the_page_has_the_marks_of_each_experiment(name: str) -> None:
    _, begun, rest = PAGE.read_text().partition(begin_of(name))
    assert begun
    assert end_of(name) in rest

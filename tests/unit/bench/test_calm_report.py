"""What the calm rounds come to."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench import page
from bench.calm_report import BARE, FULL, LIMIT, Measured, Part, lines, section
from bench.stage import NONE, OWN, RECORDED, Variant


def _rounds(*algorithm: float, calls: float = 0.0, busy: float = 50.0) -> Sequence[Measured]:
    return [Measured(each, calls, 4.0, 1.5, busy) for each in algorithm]


def _part(*own: float, busy: float = 50.0) -> Part:
    rounds = {
        NONE: _rounds(3.0, 2.0, 9.0),
        LIMIT: _rounds(4.0, 4.0, 4.0),
        BARE: _rounds(7.0, 1.0, 8.0),
        OWN: _rounds(*own, calls=1.25, busy=busy),
    }
    return Part("a", "three filters reject no node", rounds)


def _with_recorded(part: Part, algorithm: float) -> Part:
    return replace(part, rounds={**part.rounds, RECORDED: _rounds(algorithm)})


def test_what_is_added_is_the_difference_of_medians() -> None:
    part = _part(9.0, 5.0, 4.0)
    assert [part.added(name) for name in part.rounds] == [0.0, 1.0, 4.0, 2.0]
    assert part.to_bare(OWN) == 0.5


def test_what_is_added_is_compared_with_the_scheduler_that_collects_garbage_in_the_same_way() -> None:
    rounds = {NONE: _rounds(3.0), LIMIT: _rounds(5.0), f"{NONE}, GOGC=100": _rounds(4.0), "x, GOGC=100": _rounds(7.0)}
    part = Part("a", "three filters reject no node", rounds)
    assert [part.added(LIMIT), part.added("x, GOGC=100"), part.added(f"{NONE}, GOGC=100")] == [2.0, 3.0, 0.0]


@pytest.mark.parametrize(
    ("name", "extender", "gogc", "node_sample", "without"),
    [
        ("limit, connection kept", "limit, connection kept", 400, "Auto", "no extender"),
        ("bare, GOGC=100", "bare", 100, "Auto", "no extender, GOGC=100"),
        ("no extender, nodeSample=42%", "no extender", 400, "42%", "no extender, nodeSample=42%"),
        (
            "limit, connection kept, GOGC=50, nodeSample=20%",
            "limit, connection kept",
            50,
            "20%",
            "no extender, GOGC=50, nodeSample=20%",
        ),
    ],
)
def test_a_name_says_the_extender_and_what_is_set_in_its_scheduler(
    name: str, extender: str, gogc: int, node_sample: str, without: str
) -> None:
    found = Variant(name)
    assert (found.extender, found.gogc, found.node_sample) == (extender, gogc, node_sample)
    assert found.without_extender == without


@pytest.mark.parametrize(("letter", "added", "verdict"), [("a", 2.5, "ok"), ("a", 2.6, "short"), ("b", 2.8, "ok")])
def test_the_aim_is_reached_up_to_its_value(letter: str, added: float, verdict: str) -> None:
    assert replace(_with_recorded(_part(3.0 + added), 5.0), letter=letter).verdict == verdict


def test_recorded_replies_that_add_nothing_or_were_not_measured_reach_no_aim() -> None:
    for part in (_part(4.0), _with_recorded(_part(4.0), 2.5)):
        assert part.verdict == "short"
        assert next(lines(part)) == "calm-a-to-recorded nan ratio <=1.25 short"


def test_lines_say_the_ratios_and_what_each_adds() -> None:
    assert [*lines(_part(6.0))] == [
        "calm-a-to-recorded nan ratio <=1.25 short",
        "calm-a-to-bare 0.750 ratio - -",
        "calm-a-added-limit-connection-kept 1.000 ms - -",
        "calm-a-added-bare 4.000 ms - -",
        "calm-a-added-fairlead 3.000 ms - -",
    ]


def test_a_section_has_a_row_for_each_extender_and_says_what_limits_it() -> None:
    found = [*section(_part(5.0, 5.5, 4.0))]
    table = [line for line in found if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert table[2:] == [
        "| no extender | 3.00, 2.00, 9.00 | 3.00 |  |  | 4.00 | 1.50 | 50 |",
        "| limit, connection kept | 4.00, 4.00, 4.00 | 4.00 | +1.00 | 0.25 | 4.00 | 1.50 | 50 |",
        "| bare | 7.00, 1.00, 8.00 | 7.00 | +4.00 | 1.00 | 4.00 | 1.50 | 50 |",
        "| fairlead | 5.00, 5.50, 4.00 | 5.00 | +2.00 | 0.50 | 4.00 | 1.50 | 50 |",
    ]
    text = " ".join(found)
    assert "Fairlead adds 0.50 of what `bare` adds." in text
    assert "adds +1.00 ms, 0.25 of `bare`" in text
    assert "Of the +2.00 ms of Fairlead, 1.25 ms pass in its server" in text
    assert "0.75 ms in the scheduler, in TLS and in the kernel" in text
    assert "no figures of a calm machine" not in text
    assert RECORDED not in text


def test_a_section_says_how_far_fairlead_is_above_its_recorded_replies() -> None:
    text = " ".join(section(_with_recorded(_part(6.0), 4.5)))
    assert "adds +1.50 ms, 0.38 of `bare`" in text
    assert "Fairlead is 1.50 ms above it, and adds 2.00 times as much; the aim of 1.25 is missed." in text


def test_a_section_says_that_a_processor_was_full() -> None:
    assert "no figures of a calm machine" in " ".join(section(_part(5.0, busy=FULL)))


def test_a_first_section_stays_first(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    page.put("Other", ["other"], file)
    page.put("Calm", ["old"], file, first=True)
    page.put("Other", ["newer"], file)
    page.put("Calm", ["new"], file, first=True)
    assert file.read_text().partition("## ")[2] == "Calm\n\nnew\n\n## Other\n\nnewer\n"

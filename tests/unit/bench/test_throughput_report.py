"""What rounds come to."""

from pathlib import Path

from bench import page
from bench.throughput_report import Measured, Ratio, Target, ratio, said


def test_a_ratio_is_short_only_where_all_of_its_interval_is_and_ok_only_where_it_is_reached() -> None:
    assert [Ratio(0.9, 0.8, high).verdict(Target(1.0)) for high in (0.99, 1.0, 1.1)] == ["short", "open", "open"]
    assert Ratio(1.0, 0.8, 1.1).verdict(Target(1.0)) == "ok"
    equal = ratio([2.0, 2.0, 2.0], [1.0, 1.0, 1.0])
    assert equal == Ratio(2.0, 2.0, 2.0)
    spread = ratio([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    assert (spread.value, spread.low, spread.high) == (2.0, 1.0, 3.0)


def test_lines_say_the_ratio_and_what_the_algorithm_took_more_than_without() -> None:
    rounds = {"nobody": [Measured(9.0, 1.0)], "peer": [Measured(4.0, 3.0)], "own": [Measured(2.0, 2.5)]}
    assert [*said("x", rounds, {"peer": Target(0.87)}, "own", "nobody")] == [
        "x-to-peer 0.500 ratio >=0.87 short [0.500, 0.500]",
        "x-algorithm-peer 2.000 ms - -",
        "x-algorithm-own 1.500 ms - -",
    ]


def test_a_section_of_the_page_replaces_the_one_of_its_heading(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    for heading, line in (("A", "old"), ("B", "other"), ("A", "new")):
        page.put(heading, [line], file)
    text = file.read_text()
    assert text.startswith("# Benchmarks\n")
    assert text.endswith("\n\n## B\n\nother\n\n## A\n\nnew\n")
    assert "old" not in text

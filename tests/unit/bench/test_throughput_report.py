"""What rounds come to."""

from bench.throughput_report import Measured, Ratio, Target, ratio, said


def test_a_ratio_is_short_only_where_all_of_its_interval_is() -> None:
    assert [Ratio(0.9, 0.8, high).verdict(Target(1.0)) for high in (0.99, 1.0, 1.1)] == ["short", "ok", "ok"]
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

"""Histograms that a program tells of itself."""

from math import isnan

from bench.histogram import Totals, totals

_TEXT = """\
# TYPE took_seconds histogram
took_seconds_bucket{verb="filter",le="0.001"} 1
took_seconds_bucket{verb="filter",le="+Inf"} 3
took_seconds_sum{verb="filter"} 0.0125
took_seconds_count{verb="filter"} 3
took_seconds_sum{verb="prioritize"} 7.5e-03
took_seconds_count{verb="prioritize"} 1
took_seconds_summary 99
took_seconds_count_of_others{verb="filter"} 99
plain_seconds_sum 2.5
plain_seconds_count 5
"""


def test_totals_are_over_all_label_sets_and_of_that_name_only() -> None:
    assert totals(_TEXT, "took_seconds") == Totals(0.02, 4)
    assert totals(_TEXT, "plain_seconds") == Totals(2.5, 5)
    assert totals(_TEXT, "took") == totals("", "took_seconds") == Totals(0, 0)


def test_what_was_observed_between_two_looks_has_a_mean() -> None:
    assert Totals(2.5, 30).since(Totals(0.5, 10)) == Totals(2.0, 20)
    assert Totals(2.0, 20).mean_ms == 100.0
    assert isnan(Totals(1.0, 10).since(Totals(1.0, 10)).mean_ms)

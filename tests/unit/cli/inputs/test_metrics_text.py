"""Metrics are read as prometheus-client writes and reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry

from fairlead.cli.inputs.metrics_text import parse_metrics

LABELS = ("policy", "rule")
values = st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=2, max_size=2)
samples = st.lists(st.tuples(values, st.floats(allow_nan=False)), max_size=4)


class _Written(Collector):
    def __init__(self, labelled: list[tuple[list[str], float]], plain: float) -> None:
        self._labelled = labelled
        self._plain = plain

    def collect(self) -> list[CounterMetricFamily | GaugeMetricFamily]:
        counter = CounterMetricFamily("rejected", 'Of "nodes" and {braces}.', labels=LABELS)
        for labels, value in self._labelled:
            counter.add_metric(labels, value)
        return [counter, GaugeMetricFamily("stale", "Plain.", value=self._plain)]


@given(labelled=samples, plain=st.sampled_from([0.0, 1e300, float("inf"), -0.5]))
def test_what_the_library_writes_is_read_as_the_library_reads_it(
    labelled: list[tuple[list[str], float]], plain: float
) -> None:
    registry = CollectorRegistry()
    registry.register(_Written(labelled, plain))
    text = generate_latest(registry).decode()
    want = dict[str, list[tuple[dict[str, str], float]]]()
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            want.setdefault(one.name, []).append((dict(one.labels), one.value))
    assert parse_metrics(text) == want


@pytest.mark.parametrize("text", ["<html>\nnothing of that kind\n", "a 1\nb c", 'a{b="c} 1', "a{b} 1", "\x00"])
def test_of_another_text_nothing_is_read(text: str) -> None:
    assert parse_metrics(text) == {}

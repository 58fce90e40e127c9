"""Writes the reference page of the metrics from the operator itself: it is made, and never run."""

from collections.abc import Iterator
from pathlib import Path

from fairlead.kube.access.access import Access
from fairlead.kube.access.credentials import StaticCredentials
from fairlead.kube.http.client import Client
from fairlead.metrics import BUCKETS, LONG_BUCKETS, Counter, Gauges, Histogram
from fairlead.metrics import OwnMetric as Metric
from fairlead.process.health import register_gauges
from fairlead.process.leadership import Leadership
from fairlead.process.operator import OperatorReplica
from fairlead.process.settings import Address, OperateSettings
from fairlead.process.settings_file import SettingsFile

PAGE = Path(__file__).parents[2] / "docs/reference/metrics.md"
HEAD = """# Metrics

What every replica tells at `/metrics` on port 8080, for Prometheus. This page is written by `make crds`.
`fairlead serve` has the same ones, but for those of the leader and of the admission check: `fairlead_leader*`,
`fairlead_other_operator`, `fairlead_reconcile_*`, `fairlead_rollout_*`, `fairlead_scheduler_*`,
`fairlead_policy_condition`, `fairlead_wakeups_total`, `fairlead_drift_corrected_total`, `fairlead_admission_*`.
Both have those of the process (`process_*`) and of its garbage collector (`python_gc_*`).
The chart has a ServiceMonitor, alerts and a dashboard (`metrics.*` in its values).
"""


def page() -> str:
    """The page as it should be."""
    return "\n".join([HEAD, *_table(registered()), "", *_buckets(), ""])


def registered() -> list[Metric]:
    """What a replica that may lead counts."""
    nowhere = Address("", 0)
    settings = OperateSettings(listen=nowhere, probes=nowhere, admission=nowhere, pod="some", pod_uid="some")
    operator = OperatorReplica(
        settings, Client(Access("https://nowhere", StaticCredentials())), SettingsFile(None), Leadership
    )
    register_gauges(operator.replica.parts, operator.core.metrics)
    return operator.core.metrics.own


def _table(metrics: list[Metric]) -> Iterator[str]:
    yield "| metric | type | labels | what |"
    yield "| --- | --- | --- | --- |"
    for one in sorted(metrics, key=lambda one: one.name):
        labels = ", ".join(f"`{label}`" for label in one.labels)
        yield f"| `{_name(one)}` | {_type(one)} | {labels} | {one.help} |"


def _name(one: Metric) -> str:
    """As it is asked for in a query."""
    return f"{one.name}_total" if _type(one) == "counter" else one.name


def _type(one: Metric) -> str:
    match one:
        case Counter() | Gauges(grows=True):
            return "counter"
        case Histogram():
            return "histogram"
        case _:
            return "gauge"


def _buckets() -> Iterator[str]:
    yield f"Histograms have these buckets, in seconds: {', '.join(f'{one:g}' for one in BUCKETS)};"
    yield f"those of reconciles and rollouts {', '.join(f'{one:g}' for one in LONG_BUCKETS)}."


def write() -> None:
    """Write what is generated here."""
    PAGE.write_text(page())

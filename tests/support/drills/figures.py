"""Figures of the operator's replicas: their metrics and their memory."""

import itertools
import math
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fairlead.process.health import FRESH_S
from support.chart.release import OPERATOR, PODS, Release, processes
from testbed import build
from testbed.versions import program

_BUCKET = re.compile(r'^fairlead_webhook_request_duration_seconds_bucket\{(.*verb="filter".*)\} (\S+)$', re.MULTILINE)
_AWAY = re.compile(r'^fairlead_webhook_refused_total\{reason="(.*)"\} (\S+)$', re.MULTILINE)
_TOO_SLOW = re.compile(r'^fairlead_policy_too_slow_total\{policy="(.*)"\} (\S+)$', re.MULTILINE)
_PLACING = re.compile(r"^scheduler_scheduling_algorithm_duration_seconds_bucket\{(.*)\} (\S+)$", re.MULTILINE)
_SCHEDULERS = "fairlead.dev/scheduler in (fairlead, other),app.kubernetes.io/component=scheduler"
_UNTIL = re.compile(r'le="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Figures:
    """Of all replicas at a moment."""

    filters: Counter[float]
    """Calls of filter that took no longer than that, in seconds, and longer than the one before."""
    placing: Counter[float]
    """The same of kube-scheduler's: from when it begins with a pod until it has chosen a node, our calls included."""
    away: Counter[str]
    """Whom they turned away, by reason."""
    slow: Counter[str]
    """Calls that a policy could not answer in time."""
    rss: Mapping[str, int]
    """Bytes, by the pod's name."""
    restarts: Mapping[str, int]

    def __sub__(self, other: "Figures") -> "Figures":
        """Return the difference between two moments."""
        restarts = {name: count - other.restarts.get(name, 0) for name, count in self.restarts.items()}
        return Figures(
            self.filters - other.filters,
            self.placing - other.placing,
            self.away - other.away,
            self.slow - other.slow,
            self.rss,
            restarts,
        )


def look(release: Release) -> Figures:
    """Return the figures of now."""
    time.sleep(FRESH_S)  # what was told to somebody else may be that old
    filters, placing, away, slow = Counter[float](), Counter[float](), Counter[str](), Counter[str]()
    rss, restarts = dict[str, int](), dict[str, int]()
    for one in release.api.items(PODS, labelSelector=OPERATOR):
        name = one["metadata"]["name"]
        page = release.api.text(f"{PODS}/{name}:8080/proxy/metrics")
        filters.update(filter_calls(page))
        away.update({reason: int(float(count)) for reason, count in _AWAY.findall(page)})
        slow.update({policy: int(float(count)) for policy, count in _TOO_SLOW.findall(page)})
        rss[name] = sum(process.memory_info().rss for process in processes(name))
        restarts[name] = sum(status["restartCount"] for status in one["status"].get("containerStatuses", []))
    for one in release.pods(_SCHEDULERS):
        placing.update(_buckets(_PLACING.findall(_metrics_of(release, one["status"]["podIP"]))))
    return Figures(filters, placing, away, slow, rss, restarts)


def filter_calls(page: str) -> Counter[float]:
    """Return the calls of filter that a replica's page tells of, by their buckets."""
    return _buckets(_BUCKET.findall(page))


def _buckets(lines: Iterable[tuple[str, str]]) -> Counter[float]:
    """Return the count of each bucket, by its upper end. On the page each holds those before it, too."""
    found = Counter[float]()
    for labels, count in lines:
        (until,) = _UNTIL.findall(labels)
        found[math.inf if until == "+Inf" else float(until)] += int(float(count))
    for lower, upper in reversed([*itertools.pairwise(sorted(found))]):
        found[upper] -= found[lower]
    return found


def _metrics_of(release: Release, address: str) -> str:
    """Return the metrics of a pod, which are for administrators alone, and can be reached where the pod is."""
    kubectl = build.build([program("kubectl", release.cluster.kubernetes)])["kubectl"]
    enter = ["nsenter", f"--target={processes(address, variable='POD_IP')[0].pid}", "--net", str(kubectl)]
    asked = [f"--kubeconfig={release.cluster.kubeconfig}", f"--server=https://{address}:10259"]
    command = [*enter, *asked, "--insecure-skip-tls-verify", "get", "--raw=/metrics"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def within_ms(buckets: Counter[float], share: float = 0.99) -> float:
    """The upper end of the bucket with the one that so many are faster than."""
    total, seen = sum(buckets.values()), 0
    for until in sorted(buckets):
        seen += buckets[until]
        if seen >= share * total:
            return 1000 * until
    return 0.0


def report(what: str, before: Figures, after: Figures) -> str:
    """For people."""
    since = after - before
    lines = [what]
    for of, buckets in (("filter, by the replicas", since.filters), ("placing, by kube-scheduler", since.placing)):
        shares = ", ".join(f"p{100 * share:g} {within_ms(buckets, share):g} ms" for share in (0.5, 0.99, 0.999, 1.0))
        lines.append(f"  {of}: {sum(buckets.values())} times, at most {shares}")
    for name in after.rss:
        was = f"{before.rss[name] / 2**20:.0f}" if name in before.rss else "-"
        lines.append(f"  {name}: {was} -> {after.rss[name] / 2**20:.0f} MiB, restarts {since.restarts[name]}")
    lines += [f"  turned away: {count} {why}" for why, count in since.away.most_common() if count]
    lines += [f"  too slow: {count} calls of {policy}" for policy, count in since.slow.most_common() if count]
    return "\n".join(lines)

"""Plugins of Trimaran, from the sigs' scheduler-plugins, as rules about load. Pure.

load-watcher, which the plugins ask, takes the mean and the standard deviation of 15 minutes from Prometheus, or the
latest value from the metrics server. The data entries here take the same from the same source.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from fairlead.api.parse import parse_params
from fairlead.cli.imports.draft import PolicyDraft, rule_weight
from fairlead.cli.imports.foreign import (
    Foreign,
    NumberOrText,
    ObjectHead,
    QuantityOrNumber,
    join_names,
    plain_number,
    quantity_text,
)

_CPU: Final = '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m]))'
_MEMORY: Final = "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes"
_RATIOS: Final = {"cpu": _CPU, "memory": _MEMORY}
_WINDOW: Final = "[15m:1m]"
_LAG: Final = "7m30s"
"""Half of the window: a pod of that age is half in its mean."""
_INTERVAL: Final = "30s"
"""Trimaran's own; what it asks for changes slowly."""
_RESOURCES: Final = ("cpu", "memory")
_TARGET_PERCENT: Final = 40
_TARGET_PERCENT_MAX: Final = 99
_MULTIPLIER: Final = 1.5
_MULTIPLIER_PERCENT_MAX: Final = 1000
_WINDOWS: Final = 5
_WINDOWS_MAX: Final = 60
_LIMIT_WEIGHT: Final = 0.5
_RISK_MAX: Final = 10
_ROUNDED: Final = 1e-6
_SERVER: Final = re.compile(r"(?:https?://)?[-\w.:\[\]]++(?=[/?#]|$)", re.ASCII | re.IGNORECASE)
_FIRST_REQUESTS: Final = "defaultCPURequests"
_FIRST_NAMES: Final = {"targetCPUUtilization": "targetUtilization", _FIRST_REQUESTS: "defaultRequests"}
_Whole = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


class MetricProvider(Foreign):
    """Source of load."""

    type: Literal["KubernetesMetricsServer", "Prometheus", "SignalFx"] = "KubernetesMetricsServer"
    address: str = ""
    token: str = ""
    insecure_skip_verify: bool = False


class TrimaranArguments(ObjectHead):
    """Arguments that all plugins have."""

    metric_provider: MetricProvider = MetricProvider()
    watcher_address: str = ""


class TargetLoadPackingArguments(TrimaranArguments):
    """Arguments of TargetLoadPacking."""

    default_requests: dict[str, QuantityOrNumber] = Field(default_factory=dict)
    default_requests_multiplier: NumberOrText = _MULTIPLIER
    target_utilization: _Whole = 0


class LoadVariationArguments(TrimaranArguments):
    """Arguments of LoadVariationRiskBalancing."""

    safe_variance_margin: NumberOrText = 1.0
    safe_variance_sensitivity: NumberOrText = 1.0


class LowRiskArguments(TrimaranArguments):
    """Arguments of LowRiskOverCommitment."""

    smoothing_window_size: _Whole = 0
    risk_limit_weights: dict[str, NumberOrText] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadSources:
    """Data entries of a policy, for the source that a plugin asks."""

    draft: PolicyDraft

    def mean(self, resource: str, arguments: TrimaranArguments, name: str = "") -> str:
        """Return the entry of the mean load of a resource."""
        name = name or f"{resource}Mean"
        if not _is_latest(arguments):
            return self._prometheus(name, f"avg_over_time(({_RATIOS[resource]}){_WINDOW})")
        entry = {"nodeMetrics": {"resource": resource, "as": "Ratio"}}
        return self.draft.data(f"{name} of metrics", (), entry, name=name)

    def deviation(self, resource: str, arguments: TrimaranArguments) -> str | None:
        """Return the entry of the standard deviation; None if the source has none."""
        if _is_latest(arguments):
            return None
        return self._prometheus(f"{resource}Deviation", f"stddev_over_time(({_RATIOS[resource]}){_WINDOW})")

    def measured(self, resource: str, arguments: TrimaranArguments) -> dict[str, Any]:
        """Return a resource with its entries, as rules list them."""
        found = {"name": resource, "mean": self.mean(resource, arguments)}
        if (deviation := self.deviation(resource, arguments)) is not None:
            found["deviation"] = deviation
        return {**found, "measure": "UsedRatio"}

    def _prometheus(self, name: str, query: str) -> str:
        entry = {"prometheus": {"query": query, "nodeLabel": "instance", "interval": _INTERVAL}}
        return self.draft.data(name, (), entry, name=name)

    def lag(self, arguments: TrimaranArguments, comments: list[str]) -> dict[str, str]:
        """Return the lag of a rule by a mean of the window; none for the latest value."""
        if _is_latest(arguments):
            return {}
        comments.append(f"The lag {_LAG} is half of the 15 minutes of the mean: pods placed later count by requests.")
        return {"lag": _LAG}

    def note(self, plugin: str, arguments: TrimaranArguments) -> None:
        """Say what there is of the source in a policy."""
        provider = arguments.metric_provider
        if _is_latest(arguments):
            said = "the metrics server, which has no standard deviation"
        elif arguments.watcher_address:
            said = f"load-watcher{_address(arguments.watcher_address)}, which Fairlead does not ask"
        else:
            said = f"{provider.type}{_address(provider.address)}"
        self.draft.note(f"{plugin} reads {said}.")
        if not _is_latest(arguments):
            self.draft.note(
                "The data are queries about the metrics of node_exporter, to the server that the operator's settings "
                "call default: set its address there (prometheus)."
            )
        if provider.token:
            self.draft.note("Not imported: metricProvider.token. Name a Secret in the operator's settings instead.")
        if provider.insecure_skip_verify:
            self.draft.note(
                "Not imported: metricProvider.insecureSkipVerify. Certificates are always verified: give the "
                "authority in the operator's settings."
            )
        unread = [*arguments.unread, *(f"metricProvider.{name}" for name in provider.unread)]
        if unread:
            self.draft.note(f"Not imported: {join_names(unread)} of {plugin}, which it does not know.")


def _is_latest(arguments: TrimaranArguments) -> bool:
    return not arguments.watcher_address and arguments.metric_provider.type == "KubernetesMetricsServer"


def _address(text: str) -> str:
    """Return an address for a comment: scheme, host and port, and nothing that may be a secret."""
    found = _SERVER.match(text)
    return f" at {found[0]}" if found and "@" not in text else ""


def _target_load(args: Mapping[str, Any], weight: int | None, sources: LoadSources) -> None:
    plugin, comments = "TargetLoadPacking", list[str]()
    args = _renamed(args, comments)
    found = parse_params(args, TargetLoadPackingArguments)
    request = quantity_text(found.default_requests.get("cpu", "1"), ("defaultRequests", "cpu"))
    target = found.target_utilization
    if target <= 0:
        comments += [] if "targetUtilization" not in args else [f"targetUtilization {target} is 40 for {plugin}."]
        target = _TARGET_PERCENT
    if target > _TARGET_PERCENT_MAX:
        comments.append(f"targetUtilization is {target}; {_TARGET_PERCENT_MAX} is the greatest.")
        target = _TARGET_PERCENT_MAX
    percent = _percent(found.default_requests_multiplier, "defaultRequestsMultiplier", comments)
    rule = {
        "value": sources.mean("cpu", found, "cpuUse"),
        "measure": "UsedRatio",
        "resource": "cpu",
        "targetPercent": target,
        "multiplierPercent": _within(percent, 1, _MULTIPLIER_PERCENT_MAX, "defaultRequestsMultiplier", comments),
        "defaultRequest": request,
        **sources.lag(found, comments),
    }
    others = [name for name in found.default_requests if name != "cpu"]
    if others:
        comments.append(f"Not imported: {join_names(others)} of defaultRequests, which {plugin} does not read.")
    _add(sources, plugin, "target-load-packing", weight, {"targetLoad": rule}, comments)
    sources.note(plugin, found)


def _renamed(args: Mapping[str, Any], comments: list[str]) -> Mapping[str, Any]:
    """Return arguments with today's names for those of the first versions; where both are given, today's count."""
    found = dict(args)
    for first, name in _FIRST_NAMES.items():
        if first in found and name not in found:
            value = found.pop(first)
            # It was an amount of cores before it was a list of resources.
            found[name] = {"cpu": value} if first == _FIRST_REQUESTS and not isinstance(value, Mapping) else value
            comments.append(f"{first} is what {name} was called first.")
    return found


def _load_risk(args: Mapping[str, Any], weight: int | None, sources: LoadSources) -> None:
    found = parse_params(args, LoadVariationArguments)
    plugin, comments = "LoadVariationRiskBalancing", list[str]()
    margin = _risk("safeVarianceMargin", found.safe_variance_margin, plugin, comments)
    sensitivity = _risk("safeVarianceSensitivity", found.safe_variance_sensitivity, plugin, comments)
    resources = [sources.measured(resource, found) for resource in _RESOURCES]
    rule = {
        "resources": resources,
        "margin": margin,
        "sensitivity": sensitivity,
        **sources.lag(found, comments),
    }
    _add(sources, plugin, "load-variation-risk-balancing", weight, {"loadRisk": rule}, comments)
    sources.note(plugin, found)


def _low_risk(args: Mapping[str, Any], weight: int | None, sources: LoadSources) -> None:
    found = parse_params(args, LowRiskArguments)
    plugin, comments = "LowRiskOverCommitment", list[str]()
    windows = found.smoothing_window_size
    if windows <= 0:
        if "smoothingWindowSize" in args:
            comments.append(f"smoothingWindowSize {windows} is {_WINDOWS} for {plugin}.")
        windows = _WINDOWS
    resources = []
    for resource in _RESOURCES:
        field = f"riskLimitWeights.{resource}"
        share = found.risk_limit_weights.get(resource, _LIMIT_WEIGHT)
        if not 0 <= share <= 1:
            comments.append(f"{field} {plain_number(share)} is {_LIMIT_WEIGHT} for {plugin}.")
            share = _LIMIT_WEIGHT
        percent = _percent(share, field, comments)
        resources.append({**sources.measured(resource, found), "limitWeightPercent": percent})
    others = [name for name in found.risk_limit_weights if name not in _RESOURCES]
    if others:
        comments.append(f"Not imported: {join_names(others)} of riskLimitWeights, which {plugin} does not read.")
    comments.append(
        "A load beyond the limits of a node's pods counts as impossible, as in Trimaran; where a pod has no limit it "
        "counts, unlike in Trimaran."
    )
    rule = {"resources": resources, "windows": _within(windows, 1, _WINDOWS_MAX, "smoothingWindowSize", comments)}
    _add(sources, plugin, "low-risk-over-commitment", weight, {"lowRisk": rule}, comments)
    sources.note(plugin, found)


def _add(
    sources: LoadSources, plugin: str, name: str, weight: int | None, rule: Mapping[str, Any], comments: list[str]
) -> None:
    scored, on_weight = rule_weight(plugin, weight)
    sources.draft.add("scores", name, {"weight": scored, **rule}, *comments, *filter(None, [on_weight]))


def _risk(field: str, value: float, plugin: str, comments: list[str]) -> int | float:
    if value < 0:
        comments.append(f"{field} {plain_number(value)} is 1 for {plugin}.")
        return 1
    if value > _RISK_MAX:
        comments.append(f"{field} is {plain_number(value)}; {_RISK_MAX} is the greatest.")
        return _RISK_MAX
    return plain_number(value)


def _percent(value: float, field: str, comments: list[str]) -> int:
    """Return a share in whole percent, rounded half up."""
    percent = math.floor(value * 100 + 0.5)
    if abs(value * 100 - percent) > _ROUNDED:
        comments.append(f"{field} is {plain_number(value)}, here in whole percent.")
    return percent


def _within(value: int, low: int, high: int, field: str, comments: list[str]) -> int:
    bounded = min(max(value, low), high)
    if bounded != value:
        comments.append(f"{field} is out of the range from {low} to {high} that a rule takes.")
    return bounded


PluginImporter = Callable[[Mapping[str, Any], int | None, LoadSources], None]
IMPORTERS: Final[Mapping[str, PluginImporter]] = {
    "TargetLoadPacking": _target_load,
    "LoadVariationRiskBalancing": _load_risk,
    "LowRiskOverCommitment": _low_risk,
}
"""Functions that add the rule of a plugin, for its arguments and its weight."""

"""Series that fire each alert of the chart, and others that do not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

RENDERED: Final = Path(__file__).parents[2] / "data/chart/metrics.yaml"
NAMESPACE: Final = "fairlead-system"
_POD = f'namespace="{NAMESPACE}", pod="a"'


class AlertCase(NamedTuple):
    """Series of one scrape a minute that fire an alert after so many minutes, and others that do not."""

    fires: Mapping[str, str]
    quiet: Mapping[str, str]
    labels: Mapping[str, str] = {}
    """Labels of the alert beside its cluster and namespace."""
    minutes: int = 30


def _total(name: str, **labels: str) -> str:
    written = ", ".join([_POD, *(f'{key}="{value}"' for key, value in labels.items())])
    return f"fairlead_{name}{{{written}}}"


_UP, _SET = {_total("build_info", version="1"): "1x60"}, {_total("policy_set_info", hash="x"): "1x60"}
_OTHER_POD = f'namespace="{NAMESPACE}", pod="b"'
_OTHER_SET = {f'fairlead_policy_set_info{{{_OTHER_POD}, hash="y"}}': "1x60"}
_TWO = {_total("leader"): "1x60", f"fairlead_leader{{{_OTHER_POD}}}": "0x60"}
SERVE: Final = {
    f'fairlead_{name}{{namespace="{NAMESPACE}", pod="serve", {label}}}': "1x60"
    for name, label in (("build_info", 'version="1"'), ("policy_set_info", 'hash="of-files"'))
}
"""Series of a `fairlead serve` in the same namespace, with policies of its own."""
_POLICY, _RULE, _CALL = {"policy": "p"}, {"policy": "p", "rule": "r"}, {"scheduler": "s", "verb": "filter"}
_ENDS = _total("certificate_expiration_timestamp_seconds", certificate="server")
CASES = {
    "FairleadAway": AlertCase({_total("leader"): "1x5 _x55"}, {_total("leader"): "1x60"}),
    "FairleadNoLeader": AlertCase({_total("leader"): "0x60"}, {_total("leader"): "1x60"}),
    "FairleadServesNoPolicies": AlertCase(_UP, _UP | _SET, {"pod": "a", "version": "1"}),
    "FairleadPolicyNotReady": AlertCase(
        {_total("policy_condition", policy="p", type="Ready", status="False"): "1x60"},
        {
            _total("policy_condition", policy="p", type="Ready", status="True"): "1x60",
            _total("policy_condition", policy="p", type="Stalled", status="False"): "1x60",
        },
        _POLICY,
    ),
    "FairleadPolicyNotServing": AlertCase(
        {_total("policy_state", policy="p", reason="LastGoodServes"): "1x60"},
        {_total("policy_state", policy="p", reason="Compiled"): "1x60"},
        {"policy": "p", "reason": "LastGoodServes"},
    ),
    "FairleadPoliciesNotReviewed": AlertCase(
        {_total("policy_unreviewed", policy="p"): "1x60"}, {_total("policy_unreviewed", policy="p"): "0x60"}
    ),
    "FairleadRolledBack": AlertCase(
        {_total("rollout_duration_seconds_count", scheduler="s", result="rolled_back"): "0x25 1x35"},
        {_total("rollout_duration_seconds_count", scheduler="s", result="verified"): "0x25 1x35"},
        {"scheduler": "s"},
    ),
    "FairleadReconcileErrors": AlertCase(
        {_total("reconcile_duration_seconds_count", scheduler="s", result="error"): "0+1x60"},
        {_total("reconcile_duration_seconds_count", scheduler="s", result="conflict"): "0+1x60"},
        {"scheduler": "s"},
    ),
    "FairleadWatchFailing": AlertCase(
        {_total("watch_failures_total", kind="nodes", reason="403"): "0+1x60"},
        {_total("watch_failures_total", kind="nodes", reason="403"): "0x20 1x40"},
        {"pod": "a", "kind": "nodes"},
    ),
    "FairleadMirrorStale": AlertCase(
        {_total("mirror_staleness_seconds", kind="nodes"): "0+60x60"},
        {_total("mirror_staleness_seconds", kind="nodes"): "60x60"},
        {"pod": "a", "kind": "nodes"},
    ),
    "FairleadMirrorDiffers": AlertCase(
        {_total("mirror_differences_total", kind="nodes"): "0x20 1x40"},
        {_total("mirror_differences_total", kind="nodes"): "1x60"},
        {"pod": "a", "kind": "nodes"},
    ),
    "FairleadReplicasDisagree": AlertCase(_SET | _OTHER_SET | _TWO, _SET | _TWO),
    "FairleadRuleErrors": AlertCase(
        {_total("rule_errors_total", **_RULE): "0+1x60"}, {_total("rule_errors_total", **_RULE): "1x60"}, _RULE
    ),
    "FairleadDataNotReady": AlertCase(
        {_total("policy_condition", policy="p", type="DataReady", status="False"): "1x60"},
        {
            _total("policy_condition", policy="p", type="DataReady", status="True"): "1x60",
            _total("policy_condition", policy="p", type="DataReady", status="Unknown"): "1x60",
        },
        _POLICY,
    ),
    "FairleadInternalErrors": AlertCase(
        {_total("rule_internal_errors_total", **_RULE): "0x25 1x35"},
        {_total("rule_internal_errors_total", **_RULE): "1x60"},
        _RULE,
    ),
    "FairleadPolicyTooSlow": AlertCase(
        {_total("policy_too_slow_total", **_POLICY): "0+1x60"},
        {_total("policy_too_slow_total", **_POLICY): "1x60"},
        _POLICY,
    ),
    "FairleadSlow": AlertCase(
        {
            _total("webhook_request_duration_seconds_bucket", **_CALL, outcome="passed", le="0.5"): "0x60",
            _total("webhook_request_duration_seconds_bucket", **_CALL, outcome="passed", le="1.0"): "0+9x60",
            _total("webhook_request_duration_seconds_bucket", **_CALL, outcome="passed", le="+Inf"): "0+9x60",
        },
        {
            _total("webhook_request_duration_seconds_bucket", **_CALL, outcome="passed", le="0.1"): "0+9x60",
            _total("webhook_request_duration_seconds_bucket", **_CALL, outcome="passed", le="+Inf"): "0+9x60",
        },
        _CALL,
    ),
    "FairleadCallErrors": AlertCase(
        {_total("webhook_request_duration_seconds_count", **_CALL, outcome="error"): "0+1x60"},
        {_total("webhook_request_duration_seconds_count", **_CALL, outcome="refused"): "0+1x60"},
        _CALL,
    ),
    "FairleadRefusesCallers": AlertCase(
        {_total("webhook_refused_total", reason="expired"): "0+9x60"},
        {_total("webhook_refused_total", reason="expired"): "0+1x60"},
        {"reason": "expired"},
    ),
    "FairleadMissedSamples": AlertCase(
        {_total("webhook_missed_samples_total", scheduler="s"): "0x25 1x35"},
        {_total("webhook_missed_samples_total", scheduler="s"): "1x60"},
        {"pod": "a", "scheduler": "s"},
    ),
    "FairleadGrantsRefused": AlertCase(
        {
            _total("device_binds_total", result="refused"): "0+1x60",
            _total("device_binds_total", result="granted"): "0+9x60",
        },
        {
            _total("device_binds_total", result="refused"): "0+1x60",
            _total("device_binds_total", result="granted"): "0+99x60",
        },
        minutes=45,
    ),
    "FairleadForeignDevicePods": AlertCase(
        {_total("device_foreign_pods", resource="r"): "1x60"},
        {_total("device_foreign_pods", resource="r"): "0x60"},
        {"resource": "r"},
    ),
    "FairleadLedgerUnreadable": AlertCase(
        {_total("ledger_unreadable_entries"): "1x60"}, {_total("ledger_unreadable_entries"): "0x60"}
    ),
    "FairleadLearnedNotPublished": AlertCase(
        {
            _total("learned_observations_total", policy="p", rule="r", outcome="failure"): "0+1x60",
            _total("learned_publications_total", result="failed"): "0+4x60",
        },
        {
            _total("learned_observations_total", policy="p", rule="r", outcome="failure"): "0+1x60",
            _total("learned_publications_total", result="written"): "0+4x60",
        },
        minutes=45,
    ),
    "FairleadGroupWaits": AlertCase(
        {_total("group_longest_wait_seconds", scheduler="s"): "120+60x120"},
        # Each waits for a while, and starts.
        {_total("group_longest_wait_seconds", scheduler="s"): "0+60x59 0+60x59"},
        {"scheduler": "s"},
        minutes=70,
    ),
    "FairleadGroupsFail": AlertCase(
        {
            _total("group_attempts_total", scheduler="s", result="out of time"): "0+1x60",
            _total("group_attempts_total", scheduler="s", result="not bound"): "0+2x60",
            _total("group_attempts_total", scheduler="s", result="started"): "0+2x60",
            _total("group_attempts_total", scheduler="t", result="out of time"): "0+1x60",
            _total("group_attempts_total", scheduler="t", result="started"): "0+9x60",
        },
        {
            _total("group_attempts_total", scheduler="s", result="out of time"): "0+1x60",
            _total("group_attempts_total", scheduler="s", result="started"): "0+1x60",
            _total("group_attempts_total", scheduler="s", result="started otherwise"): "0+1x60",
            _total("group_attempts_total", scheduler="s", result="abandoned"): "0+9x60",
        },
        {"scheduler": "s"},
        minutes=45,
    ),
    "FairleadPodsInvisibleToAutoscalers": AlertCase(
        {_total("pods_rejected_only", policy="p", visible="false"): "1x60"},
        {
            _total("pods_rejected_only", policy="p", visible="false"): "0x60",
            _total("pods_rejected_only", policy="p", visible="true"): "1x60",
        },
        _POLICY,
    ),
    "FairleadCertificateExpires": AlertCase(
        {_ENDS: "86400x120"}, {_ENDS: "864000x120"}, {"pod": "a", "certificate": "server"}, minutes=90
    ),
}


def rendered() -> list[dict[str, Any]]:
    """The rules as the chart renders them."""
    objects = yaml.safe_load_all(RENDERED.read_text())
    return [one["spec"] for one in objects if one and one["kind"] == "PrometheusRule"][0]["groups"]  # type: ignore[no-any-return]  # noqa: RUF015


def alerts() -> dict[str, dict[str, Any]]:
    """By their names."""
    return {rule["alert"]: rule for group in rendered() for rule in group["rules"]}

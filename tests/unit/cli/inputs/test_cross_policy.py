"""What lint says of several policies that it reads together."""

import pytest

from support.policy.lint import GOOD, HEAD, finding_line, report_of, spec


def _writing(name: str, *keys: str, more: str = "") -> str:
    """A policy that writes annotations."""
    rules = ", ".join(f"{{key: {key}, expression: \"'x'\"}}" for key in keys)
    return f"{HEAD.replace('some', name)}spec: {{{more}binding: {{annotations: [{rules}]}}}}\n"


def _warned(*texts: str) -> list[str]:
    found = [finding for finding in report_of(*texts).findings if finding.severity == "warning"]
    assert {finding.reason for finding in found} <= {"Conflict", "SameName", "UnusedGrant"}
    return [finding_line(finding) for finding in found if finding.reason != "UnusedGrant"]


_A, _B = "fairlead.dev/a", "fairlead.dev/b"
CONFLICTS: dict[str, tuple[list[str], list[str]]] = {
    "one annotation of two policies": (
        [_writing("one", _A), _writing("two", _B, _A)],
        [
            (
                "b.yaml:4:80: spec.binding.annotations[1].key: 'one' (a.yaml:3) also writes fairlead.dev/a and wins "
                "where both match a pod: its name comes first; write another key, or let no pod match both"
            )
        ],
    ),
    "the later file wins by its priority": (
        [_writing("one", _A), _writing("two", _A, more="priority: 3, ")],
        [
            (
                "a.yaml:4:38: spec.binding.annotations[0].key: 'two' (b.yaml:3) also writes fairlead.dev/a and wins "
                "where both match a pod: its priority is higher; write another key, or let no pod match both"
            )
        ],
    ),
    "after an annotation in shadow": (
        [_writing("one", _A), _writing("two", f"{_B}, mode: Shadow", _A)],
        [
            (
                "b.yaml:4:94: spec.binding.annotations[1].key: 'one' (a.yaml:3) also writes fairlead.dev/a and wins "
                "where both match a pod: its name comes first; write another key, or let no pod match both"
            )
        ],
    ),
    "in shadow, where nothing is written": (
        [_writing("one", _A), _writing("two", f"{_A}, mode: Shadow"), _writing("three", _A, more="mode: Shadow, ")],
        [],
    ),
    "in one file": (
        ["---\n".join([_writing("one", _A), _writing("two", _A)])],
        [
            (
                "a.yaml:9:38: spec.binding.annotations[0].key: 'one' (a.yaml:3) also writes fairlead.dev/a and wins "
                "where both match a pod: its name comes first; write another key, or let no pod match both"
            )
        ],
    ),
    "another annotation": ([_writing("one", _A), _writing("two", _B)], []),
    "another scheduler": ([_writing("one", _A), _writing("two", _A, more="schedulerName: other, ")], []),
    "one that is off": ([_writing("one", _A, more="mode: Disabled, "), _writing("two", _A)], []),
    "other namespaces": (
        [
            _writing("one", _A, more="match: {namespaces: [a]}, "),
            _writing("two", _A, more="match: {namespaces: [b]}, "),
        ],
        [],
    ),
    "pods with another label": (
        [
            _writing("one", _A, more="match: {podSelector: {matchLabels: {tier: gold}}}, "),
            _writing("two", _A, more="match: {podSelector: {matchLabels: {tier: silver}}}, "),
        ],
        [],
    ),
    "pods that only one can be for": (
        [
            _writing("one", _A, more="match: {conditions: [{name: a, expression: pod.spec.priority > 3}]}, "),
            _writing("two", _A, more="match: {conditions: [{name: a, expression: pod.spec.priority < 3}]}, "),
        ],
        [],
    ),
    "namespaces without the label": (
        [
            _writing("one", _A, more="match: {namespaceSelector: {matchLabels: {tier: gold}}}, "),
            _writing(
                "two",
                _A,
                more="match: {namespaceSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}}, ",
            ),
        ],
        [],
    ),
}


@pytest.mark.parametrize(("texts", "want"), CONFLICTS.values(), ids=CONFLICTS)
def test_of_annotations_that_two_policies_write_it_is_said(texts: list[str], want: list[str]) -> None:
    assert _warned(*texts) == want


def test_policies_that_may_match_one_pod_are_told_of_each_other_whatever_a_third_does() -> None:
    apart = _writing("one", _A, more="match: {namespaces: [a]}, ")
    found = _warned(apart, *(_writing(name, _A, more="match: {namespaces: [b]}, ") for name in ("two", "three")))
    assert [one.split(" (")[0] for one in found] == ["b.yaml:4:64: spec.binding.annotations[0].key: 'three'"]


def test_one_name_twice_is_an_error_in_a_file_and_a_warning_in_two() -> None:
    [error] = report_of(f"{GOOD}---\n{GOOD}").findings
    assert error.severity == "error"
    assert finding_line(error) == (
        "a.yaml:8:18: metadata.name: another policy has the name 'some': a.yaml:3; rename one of them"
    )
    [warning] = report_of(GOOD, "# an overlay\n" + GOOD).findings
    assert (warning.severity, warning.reason) == ("warning", "SameName")
    assert finding_line(warning) == (
        "b.yaml:4:18: metadata.name: another policy has the name 'some': a.yaml:3; if both are applied, the later "
        "one replaces the other: rename one of them"
    )


def test_an_overlay_does_not_conflict_with_its_base() -> None:
    report = report_of(_writing("one", _A), _writing("one", _A, more="priority: 3, "))
    assert [finding.reason for finding in report.findings] == ["SameName"]


def test_what_is_said_of_several_files_stands_in_the_order_of_files_and_lines() -> None:
    off = spec("mode: Disabled\nfilters: [{name: a, expression: node.spec.unschedulable}]\n")
    first = f"{_writing('two', _A)}---\n{off}"
    report = report_of(first, _writing("one", _A))
    assert [(one.file, one.reason) for one in report.findings] == [("a.yaml", "Conflict"), ("a.yaml", "Disabled")]


def test_a_namespace_of_a_policy_is_ignored() -> None:
    [warning] = report_of(GOOD.replace("{name: some}", "{name: some, namespace: ml}")).findings
    assert (warning.severity, warning.reason) == ("warning", "HasNoEffect")
    assert finding_line(warning) == (
        "a.yaml:3:35: metadata.namespace: policies are cluster-scoped, so this is ignored; remove it; match.namespaces "
        "limits a policy to pods of some namespaces"
    )
    for harmless in ("{name: some, namespace: ''}", "{name: some, namespace: }"):
        assert report_of(GOOD.replace("{name: some}", harmless)).findings == []


def test_a_warning_about_a_part_of_an_expression_points_at_it() -> None:
    text = spec(
        "filters:\n- name: a\n  expression: |\n"
        "    node.spec.unschedulable\n    || node.metadata.annotations.gen > '10'\n"
    )
    [warning] = [finding for finding in report_of(text).findings if finding.severity == "warning"]
    assert (warning.reason, warning.line, warning.column) == ("ComparedAsText", 9, 40)
    assert warning.shown == "      || node.metadata.annotations.gen > '10'"


def test_two_rules_of_one_name_are_told_at_the_second() -> None:
    text = spec(
        "filters: [{name: a, expression: node.spec.unschedulable}]\n"
        "scores:\n- {name: b, expression: 'free.cpu'}\n- {name: a, expression: 'free.cpu'}\n"
    )
    [error] = [finding for finding in report_of(text).findings if finding.severity == "error"]
    assert (error.field, error.line, error.column, error.rule) == ("spec.scores[1].name", 8, 12, "a")


def _sharing(name: str, count: str, more: str = "") -> str:
    """A policy that grants devices."""
    entry = f"{{name: gpu, record: Gpushare, shares: [{{resource: a.io/mem}}], layout: {{count: {count}}}}}"
    return f"{HEAD.replace('some', name)}spec: {{{more}binding: {{deviceShare: [{entry}]}}}}\n"


def test_two_policies_of_any_schedulers_read_devices_alike() -> None:
    assert _warned(_sharing("one", "a.io/count"), _sharing("two", "a.io/count")) == []
    (warned,) = _warned(_sharing("one", "a.io/count"), _sharing("two", "a.io/cards", "schedulerName: other, "))
    assert "spec.binding.deviceShare[0].layout: 'one' (a.yaml:3) gives a.io/mem another layout of devices" in warned
    assert "both grant from the same devices" in warned


def _granting(name: str, entry: str, *resources: str, more: str = "") -> str:
    shares = ", ".join(f"{{resource: {one}}}" for one in resources)
    share = f"{{name: {entry}, shares: [{shares}], layout: {{annotation: a.io/devices}}}}"
    return f"{HEAD.replace('some', name)}spec: {{{more}binding: {{deviceShare: [{share}]}}}}\n"


@pytest.mark.parametrize(
    ("later", "warns"),
    [
        (_granting("two", "other", "a.io/mem", "a.io/core"), True),
        (_granting("two", "gpu", "a.io/core", "a.io/mem"), True),
        (_granting("two", "other", "a.io/core", "a.io/mem", more="match: {namespaces: [a]}, "), True),
        (_granting("two", "gpu", "a.io/mem"), False),
        (_granting("two", "gpu", "a.io/core"), False),
        (_granting("two", "other", "a.io/mem", "a.io/core", more="schedulerName: other, "), False),
        (_granting("two", "other", "a.io/mem", "a.io/core", more="mode: Disabled, "), False),
    ],
)
def test_a_device_share_of_which_another_policy_grants_a_part(later: str, warns: bool) -> None:
    warned = _warned(_granting("one", "gpu", "a.io/mem"), later)
    finding_line = (
        "spec.binding.deviceShare[0]: 'one' (a.yaml:3) comes first and grants a.io/mem, but not a.io/core: a pod that"
        " both match and that asks for both is not bound"
    )
    assert [finding_line in one for one in warned] == [True] * warns


def _recording(name: str, entry: str, resource: str, record: str = "Gpushare", more: str = "") -> str:
    share = f"{{name: {entry}, record: {record}, shares: [{{resource: {resource}}}], layout: {{count: a.io/count}}}}"
    return f"{HEAD.replace('some', name)}spec: {{{more}binding: {{deviceShare: [{share}]}}}}\n"


@pytest.mark.parametrize(
    ("later", "warns"),
    [
        (_recording("two", "other", "a.io/core"), True),
        (_recording("two", "other", "a.io/core", more="match: {namespaces: [a]}, "), True),
        (_recording("two", "other", "a.io/mem"), False),
        (_recording("two", "other", "a.io/core", record="Fairlead"), False),
        (_recording("two", "other", "a.io/core", more="schedulerName: other, "), False),
        (_recording("two", "other", "a.io/core", more="mode: Disabled, "), False),
    ],
)
def test_two_policies_that_record_for_gpushare(later: str, warns: bool) -> None:
    warned = _warned(_recording("one", "gpu", "a.io/mem"), later)
    finding_line = (
        "spec.binding.deviceShare[0]: 'one' (a.yaml:3) comes first and also records for gpushare, whose"
        " annotations have room for one grant: a pod that both match and that asks for the resources of both is not"
        " bound"
    )
    assert [finding_line in one for one in warned] == [True] * warns


def test_device_shares_of_pods_that_are_never_the_same() -> None:
    one = _granting("one", "gpu", "a.io/mem", more="match: {namespaces: [a]}, ")
    two = _granting("two", "gpu", "a.io/mem", "a.io/core", more="match: {namespaces: [b]}, ")
    assert _warned(one, two) == []


def test_the_filter_of_a_device_share_is_among_the_rules() -> None:
    listed = [rule.name for rule in report_of(_sharing("one", "a.io/count")).rules]
    assert listed == ["binding/gpu"]


def _gang(name: str, more: str = "") -> str:
    entry = "{name: job, group: \"pod.metadata.labels[?'job'].orValue('')\", size: '4'}"
    return f"{HEAD.replace('some', name)}spec: {{{more}binding: {{gang: [{entry}]}}}}\n"


@pytest.mark.parametrize(
    ("later", "warns"),
    [
        (_gang("two"), True),
        (_gang("two", "match: {namespaces: [a]}, "), True),
        (_gang("two", "schedulerName: other, "), False),
        (_gang("two", "mode: Disabled, "), False),
        (_gang("two", "mode: Shadow, "), False),
        (_sharing("two", "a.io/count"), False),
    ],
)
def test_two_policies_that_may_give_one_pod_a_group(later: str, warns: bool) -> None:
    warned = _warned(_gang("one"), later)
    text = "spec.binding.gang[0]: 'one' (a.yaml:3) may give the same pods a group before it: its name comes first"
    assert [text in one for one in warned] == [True] * warns


def test_a_gang_is_among_the_rules() -> None:
    (rule,) = report_of(_gang("one")).rules
    assert (rule.name, rule.kind, rule.uses, rule.expression) == (
        "binding/job",
        "Filter",
        ("pod.metadata.labels.job",),
        True,
    )


@pytest.mark.parametrize("modes", [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_rules_are_listed_as_they_are_written_whichever_are_in_shadow(modes: tuple[int, ...]) -> None:
    modes_of = ["mode: Shadow, " if at in modes else "" for at in range(3)]
    rules = ", ".join(f"{{name: f{at}, {mode}expression: 'true'}}" for at, mode in enumerate(modes_of))
    report = report_of(f"{HEAD}spec: {{filters: [{rules}], scores: [{{name: s, mode: Shadow, expression: '1'}}]}}\n")
    assert [(rule.name, rule.kind) for rule in report.rules] == [
        *((f"f{at}", "Filter") for at in range(3)),
        ("s", "Score"),
    ]


def _measuring(name: str, entries: range, created: str = "") -> str:
    """A policy with entries that count against the limit of all policies together."""
    head = HEAD.replace("name: some", f'name: {name}, creationTimestamp: "{created}"' if created else f"name: {name}")
    data = [f"{{name: e{at}, configMap: {{name: prices}}, factor: {at}.0}}" for at in entries]
    return f"{head}spec: {{data: [{', '.join(data)}]}}\n"


FULL = [_measuring(f"full{at}", range(16 * at + 1, 16 * at + 17), "2026-01-01T00:00:00Z") for at in range(7)]
UNKNOWN = "; in a cluster the oldest policies come first, and this file does not say how old this one is"


@pytest.mark.parametrize(
    ("first", "then", "refused", "hint"),
    [
        ("2026-03-01T00:00:00Z", "2026-02-01T00:00:00Z", "a", "share entries between policies"),
        ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "b", "share entries between policies"),
        ("", "2026-03-01T00:00:00Z", "a", "share entries between policies"),
        ("", "", "b", f"share entries between policies{UNKNOWN}"),
    ],
    ids=["the second file is older", "the first file is older", "one is not in a cluster yet", "both are new"],
)
def test_the_oldest_policies_have_their_entries_as_in_a_cluster(first: str, then: str, refused: str, hint: str) -> None:
    new = _measuring("a", range(1001, 1017), first), _measuring("b", range(2001, 2017), then)
    [error] = [one for one in report_of(*new, *FULL).findings if one.severity == "error"]
    assert (error.policy, error.field, error.hint) == (refused, "spec.data[0].configMap", hint)

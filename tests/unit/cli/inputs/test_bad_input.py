"""Whatever stands in a file: something clear is said of it, and soon."""

import os
import random
import time

import pytest

from fairlead.cli.inputs.checker import Checker
from support.policy.lint import GOOD, HEAD, errors_of, finding_line, report_of, spec

_LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 30)
)
_MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{at}: &a{at}\n  <<: [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 30)
)

FIELDS = (
    "schedulerName, mode, priority, match, data, variables, filters, scores, preemption, binding, publish, "
    "failurePolicy"
)
TEMPLATE = "`{{` is a template that was not filled in; let Helm render the file first"

REFUSED: dict[str, tuple[str | bytes, str]] = {
    "no YAML": (
        "a: [1, 2\nb: 3\n",
        "a.yaml:2:2: this is not YAML: did not find expected ',' or ']'; close the '[' of 1:4, with ',' between items",
    ),
    "a colon in a plain text": (
        spec("filters:\n- name: a\n  expression: true ? b: c\n"),
        (
            "a.yaml:7:25: this is not YAML: mapping values are not allowed in this context; quote a string that "
            "contains ': ', or write it under '|' on a line of its own"
        ),
    ),
    "a text that begins with a quote": (
        spec("filters:\n- name: a\n  expression: 'x' in node.metadata.labels\n"),
        (
            "a.yaml:7:21: this is not YAML: did not find expected key; quote a string that begins with a quote, a "
            "bracket or a brace as a whole, or write it under '|'"
        ),
    ),
    "a text that begins with an exclamation mark": (
        spec("filters:\n- name: a\n  expression: !has(node.spec.unschedulable)\n"),
        (
            "a.yaml:7:17: spec.filters[0].expression: the tag '!has(node.spec.unschedulable)' is unknown; quote "
            "a string that begins with '!'"
        ),
    ),
    "a tab for indentation": (
        "a:\n\tb: 1\n",
        (
            "a.yaml:2:1: this is not YAML: found character that cannot start any token; indent with spaces, and quote "
            "a string that begins with a tab, '%', '@' or '`'"
        ),
    ),
    "an alias for nothing": (
        "a: *b\n",
        "a.yaml:1:4: there is no anchor &b above; quote a string that begins with '*'",
    ),
    "a pattern for a label": (
        spec("match:\n  podSelector:\n    matchLabels:\n      app: *\n"),
        (
            "a.yaml:8:15: this is not YAML: did not find expected alphabetic or numeric character; quote a string that "
            "begins with '*'; labels have no patterns, but operator: Exists takes any value"
        ),
    ),
    "an alias for what it stands in": (
        "a: &b [*b]\n",
        "a.yaml:1:8: *b is inside the value that it names; write it out",
    ),
    "a billion laughs": (
        _LAUGHS,
        (
            "a.yaml:1:1: with aliases expanded this is over a trillion values, 200,000 are allowed; use fewer "
            "aliases, or split it"
        ),
    ),
    "a billion merges": (
        _MERGES,
        (
            "a.yaml:1:1: with aliases expanded this is over a trillion values, 200,000 are allowed; use fewer "
            "aliases, or split it"
        ),
    ),
    "nested without end": (
        "[" * 100_000,
        "a.yaml:1:201: this is nested more than 200 levels deep; no Kubernetes object is",
    ),
    "nested without end, by lines": (
        "- " * 100_000,
        "a.yaml:1:401: this is nested more than 200 levels deep; no Kubernetes object is",
    ),
    "nested maps without end": (
        '{"a":' * 100_000,
        "a.yaml:1:1001: this is nested more than 200 levels deep; no Kubernetes object is",
    ),
    "more values than anybody reads": (
        "[" + "1," * 600_000 + "]",
        "a.yaml:1:999996: the file has more than 500,000 values; split it",
    ),
    "a fault behind a mark of the order of bytes": (
        b"\xef\xbb\xbfa: b: c\n",
        (
            "a.yaml:1:5: this is not YAML: mapping values are not allowed in this context; quote a string that "
            "contains ': ', or write it under '|' on a line of its own"
        ),
    ),
    "a NUL": (
        "a: b\nc: \0\n",
        "a.yaml:2:4: the character U+0000 is not allowed in YAML; remove it, or write it as an escape in double quotes",
    ),
    "an escape of a terminal": (
        "a: \x1b[31m",
        "a.yaml:1:4: the character U+001B is not allowed in YAML; remove it, or write it as an escape in double quotes",
    ),
    "bytes that are no text": (
        b"a: b\nc: \xff\xfe",
        "a.yaml:2:4: this is not UTF-8 text: byte 0xff; save the file as UTF-8",
    ),
    "half of UTF-16": (
        b"\xff\xfea\0\x3d\xd8",
        "a.yaml:1:2: this is not UTF-16-LE text: byte 0x3d; save the file as UTF-8",
    ),
    "a picture": (
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        "a.yaml:1:1: this is not UTF-8 text: byte 0x89; save the file as UTF-8",
    ),
    "a field twice": (
        spec("mode: Enforce\npriority: 3\nmode: Disabled\n"),
        "a.yaml:7:3: spec.mode: 'mode' is already set in line 5; remove one of them",
    ),
    "a key that is a list": (
        f"{HEAD}spec: {{[1]: 2}}\n",
        "a.yaml:4:8: spec: a key must be a string; write it in quotes",
    ),
    "a merge of a text": (
        f"{HEAD}spec: {{<<: x}}\n",
        "a.yaml:4:12: spec: << takes a map, or a list of maps; name one as *anchor",
    ),
    "a tag that lies": (
        f"{HEAD}spec: {{priority: !!int x}}\n",
        "a.yaml:4:24: spec.priority: 'x' does not match its tag; remove the tag",
    ),
    "infinity": (spec("priority: .inf\n"), "a.yaml:5:13: spec.priority: must be a whole number, not inf"),
    "no number": (
        spec("data: [{name: a, nodeLabel: {key: a}, factor: .nan}]\n"),
        "a.yaml:5:49: spec.data[0].factor: must be a finite number, not nan",
    ),
    "a number of ten thousand digits": (
        spec(f"priority: {'9' * 10_000}\n"),
        "a.yaml:5:13: spec.priority: must be a whole number, not inf",
    ),
    "a field that there is not": (
        spec("filter: []\n"),
        "a.yaml:5:3: spec.filter: there is no such field; did you mean filters?",
    ),
    "a value of the wrong kind": (
        spec("priority: high\n"),
        "a.yaml:5:13: spec.priority: must be a whole number, not 'high'",
    ),
    "a list where a text belongs": (
        spec("schedulerName:\n- a\n"),
        "a.yaml:5:3: spec.schedulerName: must be a string, not a list",
    ),
    "another version": (
        HEAD.replace("v1alpha1", "v2") + "spec: {}\n",
        "a.yaml:1:13: apiVersion: 'fairlead.dev/v2' is not fairlead.dev/v1alpha1; did you mean fairlead.dev/v1alpha1?",
    ),
    "a kind that is nearly ours": (
        HEAD.replace("Policy", "Polcy") + "spec: {}\n",
        (
            "a.yaml:2:7: kind: 'SchedulerExtenderPolcy' is not SchedulerExtenderPolicy; did you mean "
            "SchedulerExtenderPolicy?"
        ),
    ),
    "no spec": (HEAD, f"a.yaml:1:1: spec: is missing; its fields are {FIELDS}"),
    "a spec that is null": (f"{HEAD}spec:\n", f"a.yaml:4:6: spec: is missing; its fields are {FIELDS}"),
    "an item of a list": (
        (
            "kind: List\nitems:\n- apiVersion: fairlead.dev/v1alpha1\n  kind: SchedulerExtenderPolicy\n"
            "  metadata: {name: a}\n  spec: {mode: X}\n"
        ),
        "a.yaml:6:16: spec.mode: 'X' is not one of Enforce, Shadow, Disabled",
    ),
    "a field of what is merged in": (
        (
            "apiVersion: fairlead.dev/v1alpha1\nkind: SchedulerExtenderPolicy\n"
            "metadata: {name: a, labels: &x {name: 7}}\n"
            "spec:\n  filters: [{<<: *x, expression: node.spec.unschedulable}]\n"
        ),
        "a.yaml:3:39: spec.filters[0].name: must be a string, not 7; write it in quotes",
    ),
    "a name in another script": (
        spec("filters: [{name: a, expression: node.имя == ''}]\n"),
        "a.yaml:5:40: spec.filters[0].expression: syntax error: unexpected `имя`",
    ),
    "a misspelt field": (
        spec("filters:\n- name: a\n  expression: |\n    // how many\n    pod.spec.prority > 3\n"),
        "a.yaml:9:16: spec.filters[0].expression: PodSpec has no field `prority`; did you mean `priority`?",
    ),
    "variables that double at each step": (
        spec(
            "variables:\n- {name: v0, expression: node.spec.unschedulable}\n"
            + "".join(
                f"- {{name: v{at}, expression: variables.v{at - 1} && variables.v{at - 1}}}\n" for at in range(1, 32)
            )
            + "filters: [{name: a, expression: variables.v31}]\n"
        ),
        (
            "a.yaml:14:28: spec.variables[8].expression: has 1,533 parts with its variables written out, "
            "1,000 are allowed; use variables less often"
        ),
    ),
    "a quote that nothing closes": (
        spec("filters:\n- name: a\n  expression: 'node.spec.unschedulable\n- name: b\n"),
        "a.yaml:7:17: this is not YAML: this quote is never closed; close it",
    ),
    "a quote that the next one closes": (
        spec("filters:\n- name: a\n  expression: 'node.spec\n- name: b\n  expression: 'node.spec.unschedulable'\n"),
        (
            "a.yaml:7:17: this is not YAML: this quote is closed only in line 9, with more text after it; "
            "close it where the string ends"
        ),
    ),
    "a field that is not in line": (
        spec("filters:\n- name: a\n expression: node.spec.unschedulable\n"),
        "a.yaml:7:4: this is not YAML: did not find expected key; begin the fields of one map in one column",
    ),
    "a field under a text": (
        spec("filters:\n- name: a\n    expression: node.spec.unschedulable\n"),
        (
            "a.yaml:7:17: this is not YAML: mapping values are not allowed in this context; begin the fields of one "
            "map in one column"
        ),
    ),
    "a dash without a space": (
        spec("filters:\n-name: a\n  expression: node.spec.unschedulable\n"),
        (
            "a.yaml:7:15: this is not YAML: mapping values are not allowed in this context; write a space after the "
            "'-' of the line above"
        ),
    ),
    "a colon without a space": (
        spec("filters:\n- name:a\n  expression: node.spec.unschedulable\n"),
        (
            "a.yaml:7:15: this is not YAML: mapping values are not allowed in this context; write a space after the "
            "':' of the line above"
        ),
    ),
    "a block that is not indented": (
        spec("filters:\n- name: a\n  expression: |\n  node.spec.unschedulable\n"),
        (
            "a.yaml:8:5: this is not YAML: could not find expected ':'; indent the text under '|' or '>' more than "
            "its key"
        ),
    ),
    "a text that begins like a block": (
        spec("filters:\n- name: a\n  expression: > 5\n"),
        (
            "a.yaml:7:19: this is not YAML: did not find expected comment or line break; a block under '|' or '>' "
            "begins on the next line; quote any other string that begins so"
        ),
    ),
    "an open bracket at the end": (
        "a: [",
        (
            "a.yaml:1:5: this is not YAML: did not find expected node content; a value is missing here, or a string "
            "that must be quoted"
        ),
    ),
    "a template for a value": (
        spec("filters:\n- name: a\n  expression: {{ .Values.expression }}\n"),
        f"a.yaml:7:18: spec.filters[0].expression: {TEMPLATE}",
    ),
    "a template for a line": (
        spec("filters:\n{{- if .Values.x }}\n- name: a\n{{- end }}\n"),
        f"a.yaml:6:3: {TEMPLATE}",
    ),
    "a template in a text": (
        spec('schedulerName: "{{ .Release.Name }}"\n'),
        f"a.yaml:5:18: spec.schedulerName: '{{{{ .Release.Name }}}}' is not possible here; {TEMPLATE}",
    ),
    "a template in quotes for a number": (
        spec("priority: '{{ .Values.priority }}'\n"),
        f"a.yaml:5:13: spec.priority: must be a whole number, not '{{{{ .Values.priority }}}}'; {TEMPLATE}",
    ),
    "a merge that was not finished": (
        spec("<<<<<<< HEAD\nmode: Enforce\n"),
        "a.yaml:5:3: this is a conflict marker; finish the merge",
    ),
    "two objects that nothing parts": (
        HEAD + "spec: {}\n" + HEAD + "spec: {}\n",
        "a.yaml:5:1: apiVersion: 'apiVersion' is already set in line 1; write --- between two objects",
    ),
    "a space that does not break": (
        spec("filters:\n-\u00a0name: a\n"),
        rf"a.yaml:6:3: spec['-\xa0name']: there is no such field; the fields here are {FIELDS}",
    ),
    "a text that a comment cuts": (
        spec("filters:\n- name: a\n  expression: node.metadata.labels['a #b'] == 'x'\n"),
        (
            "a.yaml:7:38: spec.filters[0].expression: syntax error: the string does not end; "
            "YAML reads #b'] == 'x' as a comment: quote the string"
        ),
    ),
    "a text without its end": (
        spec("filters:\n- name: a\n  expression: pod.metadata.name == # 'x'\n"),
        (
            "a.yaml:7:37: spec.filters[0].expression: syntax error: unexpected end of the expression; "
            "YAML reads # 'x' as a comment: quote the string"
        ),
    ),
    "a remark behind what is wrong for another reason": (
        spec("filters:\n- name: a\n  expression: pod.spec.prority > 1 # a remark\n"),
        "a.yaml:7:26: spec.filters[0].expression: PodSpec has no field `prority`; did you mean `priority`?",
    ),
    "a remark behind what gives no truth": (
        spec("filters:\n- name: a\n  expression: pod.spec.priority # a remark\n"),
        ("a.yaml:7:17: spec.filters[0].expression: expected a bool, got an int; write `pod.spec.priority > 0`"),
    ),
    "an expression of 1 MiB": (
        spec(f"filters: [{{name: a, expression: '{'x' * (1 << 20)}'}}]\n"),
        "a.yaml:5:35: spec.filters[0].expression: must have at most 4096 characters, not 1048576",
    ),
    "ten thousand rules": (
        spec("filters:\n" + "".join(f"- {{name: a{at}, expression: 'true'}}\n" for at in range(10_000))),
        "a.yaml:5:3: spec.filters: must have at most 32 items, and has more than 100",
    ),
}


@pytest.mark.parametrize(("text", "want"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_with_its_place(text: str | bytes, want: str) -> None:
    began = time.process_time()
    assert want in [finding_line(error) for error in errors_of(text)]
    # Coverage, which looks at every line, takes several times as long.
    assert time.process_time() - began < 10 or "COVERAGE_RUN" in os.environ


TAKEN: dict[str, str | bytes] = {
    "a policy": GOOD,
    "with a mark of the order of bytes": b"\xef\xbb\xbf" + GOOD.encode(),
    "in UTF-16 with a mark": GOOD.encode("utf-16"),
    "in UTF-16, the other end first": GOOD.encode("utf-16-be"),
    "in UTF-32": GOOD.encode("utf-32"),
    "with CRLF": GOOD.replace("\n", "\r\n"),
    "with the end of a document": f"---\n{GOOD}...\n",
    "with status": GOOD + "status: {anything: [1, {x: .inf}]}\n",
    "with a text for a field that could be a date": GOOD.replace("some", "2026-11-21"),
    "with empty documents around it": f"---\n---\n# nothing\n---\n{GOOD}---\n",
    "beside another kind with a key twice": f"{GOOD}---\nkind: Other\na: 1\na: !what 2\n",
    "with `yes` and `08` read as kubectl does": GOOD + "status: {a: yes, b: 08, c: 0o17, d: 1_000, e: 1:30}\n",
}


@pytest.mark.parametrize("text", TAKEN.values(), ids=TAKEN)
def test_it_is_taken(text: str | bytes) -> None:
    report = report_of(text)
    assert [finding_line(finding) for finding in report.findings] == []
    assert report.policies == 1


NO_POLICIES: dict[str, tuple[str | bytes, int]] = {
    "an empty file": ("", 0),
    "only blanks": (" \n\n", 0),
    "only a remark": ("# nothing here\n", 0),
    "only a mark of the order of bytes": (b"\xef\xbb\xbf", 0),
    "a number": ("1", 1),
    "a list": ("[1, 2]", 1),
    "another kind": ("kind: Deployment\napiVersion: apps/v1\n", 1),
    "a list of other kinds": ("kind: List\nitems: [{kind: A}, {kind: B}, 1]\n", 3),
    "an empty list": ("kind: List\nitems: []\n", 0),
    "a kind that is no text": ("kind: [a]\n", 1),
}


@pytest.mark.parametrize(("text", "want_ignored"), NO_POLICIES.values(), ids=NO_POLICIES)
def test_there_is_no_policy_in_it(text: str | bytes, want_ignored: int) -> None:
    report = report_of(text)
    assert (report.findings, report.policies, report.ignored) == ([], 0, want_ignored)


def test_a_policy_before_the_fault_is_looked_at() -> None:
    report = report_of(f"{spec('mode: X')}\n---\na: [\n")
    assert [finding_line(error).split(": ")[0] for error in report.findings] == ["a.yaml:5:9", "a.yaml:8:1"]


def test_nothing_raises_whatever_bytes_there_are() -> None:
    generator = random.Random(7)  # noqa: S311 - nothing secret
    pieces = [
        b"\0",
        b"\xff",
        b"{",
        b"[",
        b"- ",
        b": ",
        b"&a ",
        b"*a",
        b"<<",
        b"|\n",
        b">2\n",
        b"'",
        b'"\\',
        b"\n",
        b"\t",
        b"!",
        b"\xc3\xa9",
    ]
    good = GOOD.encode()
    checker = Checker()
    for _ in range(600):
        data = bytearray(good)
        for _ in range(generator.randint(1, 6)):
            at = generator.randrange(len(data))
            data[at : at + generator.randint(0, 4)] = generator.choice(pieces)
        checker.check("x.yaml", bytes(data))
    assert checker.report.policies > 50

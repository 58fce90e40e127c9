"""Suites of tests in few words, and what `fairlead test` says of them."""

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlead.api.parse import parse_params
from fairlead.cli.main import main
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.suites.run import Result, ask, run_case
from fairlead.suites.suite import Suite
from support.policy import policy

Object = dict[str, Any]
POLICY = """\
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata: {name: ssd}
spec:
  filters:
  - {name: fast, expression: "node.metadata.labels[?'disk'].orValue('') == 'ssd'", reason: slow disk}
"""
SUITE = """\
policies: [ssd.yaml]
nodes:
- metadata: {name: a, labels: {disk: ssd}}
- metadata: {name: b}
cases:
- name: pods go to fast disks
  pod: {}
  expect:
    passed: [a]
    rejected: {b: slow disk}
"""


def results(suite: Object, *policies: CompiledPolicy) -> list[Result]:
    """Return the results of a suite's cases."""
    read = parse_params({"policies": ["x"], **suite}, Suite)
    return [run_case(read, at, policies, ask) for at in range(len(read.cases))]


def result(expect: Object, *policies: CompiledPolicy, pod: Object | None = None, **suite: Any) -> Result:
    """The same of one case."""
    case = {"name": "case", "pod": pod or {}, "expect": expect}
    [found] = results({"cases": [case], **suite}, *policies)
    return found


def difference_lines(found: Result) -> list[str]:
    """Differences, or faults, each as one line."""
    faults = [str(one) for one in found.faults]
    return faults + [f"{one.path[0]}: {one.subject}: {one.expected} | {one.got}" for one in found.differences]


def node(name: str, **labels: str) -> Object:
    """A node as a suite writes it."""
    return {"metadata": {"name": name, "labels": labels}}


def written(folder: Path, suite: str = SUITE, policy_: str = POLICY) -> Path:
    """A suite and its policy in a folder."""
    (folder / "ssd.yaml").write_text(policy_)
    path = folder / "ssd.test.yaml"
    path.write_text(textwrap.dedent(suite))
    return path


def run(*arguments: object) -> int:
    """The exit code of `fairlead test`."""
    return main(["test", *map(str, arguments)])


def report(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any]:
    """The exit code, and what it prints as JSON."""
    code = run(*arguments, "-o", "json")
    return code, json.loads(capsys.readouterr().out)


def two_disks() -> Sequence[CompiledPolicy]:
    """A policy with one of each kind of rule."""
    return [
        policy(
            "disks",
            match={"conditions": {"ours": "pod.metadata.labels[?'app'].orValue('') != 'other'"}},
            filters={"fast": {"expression": "'ssd' in node.metadata.labels", "reason": "slow disk"}},
            scores={"empty": {"expression": "100.0 - 10.0 * double(pods.size())", "weight": 2}},
            protect={"kept": "victim.metadata.labels[?'keep'].orValue('') == 'yes'"},
            annotations={"fairlead.dev/disk": "node.metadata.labels['ssd']"},
        )
    ]

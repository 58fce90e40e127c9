"""Warnings that a policy accepts: each with its reason, and told where there is no such warning."""

from typing import Any

import pytest

from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.lint.acceptances import ACCEPT, LENGTH_MAX
from fairlead.policy.lint.codes import LintWarning
from fairlead.policy.lint.inspection import inspect
from fairlead.policy.lint.policy_checks import warnings_steps
from support.policy import MODEL, obj
from support.policy.building import INSTALLED

_FEW = "pods.size() < 3"
_RULES = CompileOptions(INSTALLED)


def found(accepts: Any, **spec: Any) -> list[LintWarning]:
    policy = obj("p", **(spec or {"filters": {"few": _FEW, "fewer": "pods.size() < 2"}}))
    policy["metadata"]["annotations"] = {ACCEPT: accepts}
    return [one for one in inspect(policy, MODEL, _RULES, warnings_steps).warnings if one.severity != "note"]


def shown(warnings: list[LintWarning]) -> list[tuple[str, str, str]]:
    return [(one.severity, str(one.reason), one.accepted) for one in warnings]


def test_a_warning_of_a_rule_is_accepted_with_its_reason() -> None:
    assert shown(found("CountsPods/few: a few more do no harm")) == [
        ("accepted", "CountsPods", "a few more do no harm"),
        ("warning", "CountsPods", ""),
    ]


def test_warnings_of_all_rules_are_accepted_by_one_line() -> None:
    assert shown(found("\n CountsPods : it is soft\n\n")) == [("accepted", "CountsPods", "it is soft")] * 2


def test_a_colon_and_a_slash_may_be_in_the_reason() -> None:
    [first, _] = found("CountsPods: see https://example.com/why: it is soft")
    assert first.accepted == "see https://example.com/why: it is soft"


def test_an_annotation_of_the_binding_is_named_by_its_key() -> None:
    [one] = found(
        "RunsOnEngine/fairlead.dev/a: it is rare",
        filters={"f": "node.spec.unschedulable"},
        annotations={"fairlead.dev/a": "'%s'.format([node.metadata.name])"},
    )
    assert shown([one]) == [("accepted", "RunsOnEngine", "it is rare")]


FAULTS: dict[str, tuple[str, str, str]] = {
    "there is no such warning": (
        "CountsPods: soft\nPodIdentity: meant",
        "PodIdentity is accepted, and there is no such warning",
        "remove the line",
    ),
    "there is no such rule": (
        "CountsPods: soft\nCountsPods/fewest: meant",
        "CountsPods/fewest is accepted, and there is no such warning",
        "remove the line",
    ),
    "the rule is misspelt": (
        "CountsPods/few: soft\nCountsPods/fewr: meant",
        "CountsPods/fewr is accepted, and there is no such warning",
        "did you mean CountsPods/fewer?",
    ),
    "another rule has it": (
        "CountsPods/few: soft\nCountsPods/at-most-two: meant",
        "CountsPods/at-most-two is accepted, and there is no such warning",
        "did you mean CountsPods/fewer?",
    ),
    "there is no such reason": (
        "CountsPods: soft\nCountPods: meant",
        "there is no warning 'CountPods'",
        "did you mean CountsPods?",
    ),
    "it does not say why": (
        "CountsPods: soft\nPodIdentity:",
        "the line about PodIdentity does not say why",
        "write a line such as `CountsPods/few-pods: a few more do no harm`",
    ),
    "it is a note": (
        "CountsPods: soft\nDisabled: meant",
        "Disabled is a note, and notes need not be accepted",
        "remove the line",
    ),
    "it would accept itself": (
        "CountsPods: soft\nUnusedAcceptance: meant",
        "UnusedAcceptance cannot be accepted",
        "remove the lines that accept nothing",
    ),
}


@pytest.mark.parametrize(("accepts", "message", "hint"), FAULTS.values(), ids=FAULTS)
def test_a_line_that_accepts_nothing_is_a_warning(accepts: str, message: str, hint: str) -> None:
    [wrong] = [one for one in found(accepts) if one.severity == "warning" and one.reason != "CountsPods"]
    assert (wrong.reason, wrong.message, wrong.hint) == ("UnusedAcceptance", message, hint)
    assert wrong.path == ("metadata", "annotations", ACCEPT)


def test_an_annotation_that_is_too_long_accepts_nothing() -> None:
    said = found("CountsPods: " + "x" * LENGTH_MAX)
    assert [(str(one.reason), one.severity) for one in said] == [
        ("CountsPods", "warning"),
        ("CountsPods", "warning"),
        ("UnusedAcceptance", "warning"),
    ]


@pytest.mark.parametrize("accepts", [None, 5, ["CountsPods: soft"], ""])
def test_an_annotation_that_is_no_text_is_passed_over(accepts: Any) -> None:
    assert shown(found(accepts)) == [("warning", "CountsPods", "")] * 2

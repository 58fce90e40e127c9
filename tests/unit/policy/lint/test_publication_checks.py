"""Warnings about node affinity that is published."""

from typing import Any

import pytest

from fairlead.policy.lint.codes import LintWarning
from support.policy import obj
from support.policy.compile_warnings import warnings_of

_L = "node.metadata.labels"
_POOL = f"{_L}[?'pool'].orValue('') == 'memory'"
_ROOM = "free['cpu'] > 2.0"
_NAMED = "`node.metadata.name != 'n'`: Karpenter ignores pods that name nodes"
_GPU = f"'amd.com/gpu' in {_L}"
_LATE = f"leaves out `{_GPU}`: amd.com/gpu is a late label: nodes get it after they have joined"
_STARTS = f"{_L}['a'].startsWith('x')"
PUBLISHED: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "all of it": ({"filters": {"f": _POOL}}, []),
    "no filter": (
        {"scores": {"s": _ROOM + " ? 1.0 : 0.0"}},
        [("PublishesNothing", "nothing is published, because the policy has no filters")],
    ),
    "nothing": (
        {"filters": {"f": f"{_ROOM} && node.metadata.name != 'n'", "late": _GPU}},
        [
            (
                "PublishesNothing",
                f"nothing is published, because labels cannot say it: f leaves out `{_ROOM}`, {_NAMED}; late {_LATE}",
            )
        ],
    ),
    "some of it": (
        {"filters": {"f": f"{_POOL} && {_ROOM}", "g": _POOL}},
        [
            (
                "PublishesWider",
                "what is published also selects nodes that do not pass: f leaves out `free['cpu'] > 2.0`",
            )
        ],
    ),
    "a match": (
        {"match": {"conditions": {"high": "pod.spec.priority > 5"}}, "filters": {"f": _POOL}},
        [
            (
                "PublishesNothing",
                "nothing is published, because labels cannot say which pods match: high reads `pod.spec.priority > 5`",
            )
        ],
    ),
    "no node": ({"filters": {"f": f"{_L}['a'] == 'x' && {_L}['a'] == 'y'"}}, []),
    "nothing is applied": ({"mode": "Disabled", "filters": {"f": _ROOM}}, []),
}


def told_of(**spec: Any) -> list[LintWarning]:
    return warnings_of(**obj(**spec)["spec"])


@pytest.mark.parametrize(("spec", "want"), PUBLISHED.values(), ids=PUBLISHED)
def test_what_is_published_is_told(spec: dict[str, Any], want: list[tuple[str, str]]) -> None:
    found = told_of(publish="NodeAffinity", **spec)
    told = [one for one in found if one.reason.startswith("Publishes")]
    assert [(one.reason, one.message) for one in told] == want
    assert all(one.path == ("spec", "publish") for one in told)
    assert not [one for one in found if one.reason == "InvisibleToAutoscalers"]


@pytest.mark.parametrize("publish", [{}, {"publish": "None"}])
def test_nothing_is_told_of_a_policy_that_does_not_publish(publish: dict[str, str]) -> None:
    assert not [one for one in told_of(filters={"f": _ROOM}, **publish) if one.reason.startswith("Publishes")]


HINTS = {
    "the same": (_POOL, "autoscalers understand pods that have the same requirement themselves:\naffinity:"),
    "it depends on the pod": (f"{_L}['a'] == pod.metadata.labels['a']", "`fairlead affinity` shows it"),
    "a part": (
        f"{_POOL} && {_L}['a'].startsWith('x')",
        "shows it, without `node.metadata.labels['a'].startsWith('x')`",
    ),
}


@pytest.mark.parametrize(("expression", "hint"), HINTS.values(), ids=HINTS)
def test_a_filter_that_autoscalers_do_not_see_is_told_what_would_be_published(expression: str, hint: str) -> None:
    [found] = [one for one in told_of(filters={"f": expression}) if one.reason == "InvisibleToAutoscalers"]
    assert found.hint.startswith("with `publish: NodeAffinity` pods get what it implies when they are created; ")
    assert hint in found.hint

"""What a suite says that rules have learned."""

from typing import Any, Final

import pytest

from support.policy import policy
from support.suites.running import difference_lines, results

RULE: Final = policy("p", uid="", scores={"works": {"kubeRL": {"priorPercent": 80, "halfLife": "12h"}}})
NODES: Final = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]
POD: Final = {"metadata": {"labels": {"app": "x"}}}
KNOWN: Final = {"works": [{"type": "default/x", "node": "a", "value": 0.671494, "count": 2.207107}]}


def suite(scores: dict[str, float], of_suite: Any = None, of_case: Any = None, **case: Any) -> dict[str, Any]:
    one = {"name": "one", "pod": POD, "expect": {"scores": scores}, **case}
    if of_case is not None:
        one["learned"] = of_case
    made: dict[str, Any] = {"nodes": NODES, "cases": [one]}
    return made if of_suite is None else made | {"learned": of_suite}


@pytest.mark.parametrize(
    "given",
    [
        suite({"a": 80, "b": 80}),
        suite({"a": 67, "b": 80}, KNOWN),
        suite({"a": 67, "b": 80}, None, KNOWN),
        suite({"a": 80, "b": 80}, KNOWN, {"works": []}),
        suite({"a": 72, "b": 80}, {"works": [{**KNOWN["works"][0], "age": "18h"}]}),
        suite({"a": 40, "b": 90}, {"works": [{**KNOWN["works"][0], "value": 0.4, "count": 1},
                                             {**KNOWN["works"][0], "node": "b", "value": 0.9, "count": 1}]}),
    ],
)  # fmt: skip
def test_rules_score_by_what_they_have_learned(given: dict[str, Any]) -> None:
    (found,) = results(given, RULE)
    assert difference_lines(found) == []


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        ({"work": []}, "learned.work: no policy of this suite has a rule 'work' that learns: did you mean works?"),
        ({"works": [{**KNOWN["works"][0], "node": "aa"}]}, "node: there is no node 'aa' in this case: did you mean a?"),
        (
            {"works": [{**KNOWN["works"][0], "value": 0.2, "count": 1}]},
            "value: 0.2 is no mean of rewards: with this prior and count it is from 0.4 to 0.9",
        ),
    ],
)
def test_what_cannot_be_is_an_error(learned: Any, message: str) -> None:
    (found,) = results(suite({"a": 1}, learned), RULE)
    (fault,) = map(str, found.faults)
    assert message.replace(": did", "; did").replace(": with", "; with") in fault

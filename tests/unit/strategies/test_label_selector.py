"""Label selectors mean what they mean to Kubernetes."""

from typing import Any

import pytest

from fairlead.api.selectors import LabelSelector, compile_selector


def where(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "a", "operator": operator, **({"values": [*values]} if values else {})}]}


_CASES: dict[str, tuple[dict[str, Any], dict[str, str], bool]] = {
    "an empty selector is every object": ({}, {}, True),
    "a label with the value": ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
    "a label with another value": ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
    "a label that is not there": ({"matchLabels": {"a": ""}}, {}, False),
    "both labels are needed": ({"matchLabels": {"a": "1", "b": "1"}}, {"a": "1"}, False),
    "In, and it is": (where("In", "1", "2"), {"a": "2"}, True),
    "In, and it is not": (where("In", "1", "2"), {"a": "3"}, False),
    "In, and it is not there": (where("In", "1"), {}, False),
    "NotIn, and it is": (where("NotIn", "1"), {"a": "1"}, False),
    "NotIn, and it is not": (where("NotIn", "1"), {"a": "2"}, True),
    "NotIn, and it is not there": (where("NotIn", "1"), {}, True),
    "Exists, and it does": (where("Exists"), {"a": ""}, True),
    "Exists, and it does not": (where("Exists"), {"b": ""}, False),
    "DoesNotExist, and it does": (where("DoesNotExist"), {"a": ""}, False),
    "DoesNotExist, and it does not": (where("DoesNotExist"), {}, True),
    "labels and expressions are both needed": ({"matchLabels": {"b": "1"}, **where("Exists")}, {"b": "1"}, False),
}


@pytest.mark.parametrize(("selector", "labels", "want"), _CASES.values(), ids=_CASES)
def test_a_selector(selector: dict[str, Any], labels: dict[str, str], want: bool) -> None:
    assert compile_selector(LabelSelector.model_validate(selector))(labels) is want


def test_equal_selectors_are_one_key() -> None:
    one, other = (
        LabelSelector.model_validate({"matchLabels": labels, **where("In", "1")})
        for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})
    )
    assert (one == other, hash(one) == hash(other)) == (True, True)
    assert len({one, LabelSelector.model_validate({"matchLabels": {"a": "1"}})}) == 2

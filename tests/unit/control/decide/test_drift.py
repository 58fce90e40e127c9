"""Whether an object is as it is meant to be."""

from copy import deepcopy
from typing import Any

import pytest

from fairlead.control.decide.drift import APPLIED, compare, includes, to_apply
from support.render.schedulers import SCENES

CONTAINER = {
    "name": "main",
    "args": ["--a"],
    "resources": {"limits": {"cpu": "0.5"}},
    "env": [{"name": "A", "value": "1"}],
}


@pytest.mark.parametrize(
    ("wanted", "live", "is_held"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, True, id="defaults are filled in"),
        pytest.param({"a": 1}, {"a": 2}, False, id="a value"),
        pytest.param({"a": 1}, {}, False, id="gone"),
        pytest.param({"a": {}, "b": [], "c": "", "d": None}, {}, True, id="what is empty is left out"),
        pytest.param({"a": False}, {}, False, id="false is not empty"),
        pytest.param({"a": 0}, {}, False, id="nor is zero"),
        pytest.param({"args": ["a"]}, {"args": ["a", "b"]}, False, id="an argument more"),
        pytest.param({"containers": [CONTAINER]}, {"containers": [{"name": "x"}, CONTAINER]}, True, id="a sidecar"),
        pytest.param({"containers": [CONTAINER]}, {"containers": [{"name": "x"}]}, False, id="another container"),
        pytest.param({"cpu": "0.5"}, {"cpu": "500m"}, True, id="the same amount"),
        pytest.param({"cpu": "0.5"}, {"cpu": "501m"}, False, id="another amount"),
        pytest.param({"verbs": ["get", "update"]}, {"verbs": ["get"]}, False, id="a verb less"),
        pytest.param(
            {"rules": [{"verbs": ["get"]}]}, {"rules": [{"verbs": ["get"]}, {"verbs": ["*"]}]}, False, id="a rule more"
        ),
        pytest.param({"a": {"b": 1}}, {"a": None}, False, id="emptied"),
    ],
)
def test_what_is_held(wanted: Any, live: Any, *, is_held: bool) -> None:
    assert includes(wanted, live) == is_held


def test_states() -> None:
    (first, *_) = SCENES.values()
    for wanted in first.objects:
        live = deepcopy(to_apply(wanted))
        assert compare(wanted, None) == "missing"
        assert compare(wanted, live) == ""
        live["metadata"]["resourceVersion"] = "7"
        live["metadata"]["annotations"]["other"] = "x"
        assert compare(wanted, live) == ""
        del live["metadata"]["labels"]["app.kubernetes.io/name"]
        assert compare(wanted, live) == "edited"
        assert compare({**wanted, "more": 1}, live) == "changed"
        del live["metadata"]["annotations"][APPLIED]
        assert compare(wanted, live) == "changed"

from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from fairlead.api.errors import FieldError, InvalidObjectError, render_path
from fairlead.api.params import DataName, Listed, Params, data_names, exactly_one_of
from fairlead.api.status import Status
from fairlead.api.values import Duration, Quantity, parse_duration, within

DURATIONS = {"0s": 0, "90s": 90, "5m": 300, "1h": 3600, "1h30m": 5400, "1h30m5s": 5405, "168h": 604_800, "1h5s": 3605}
NOT_DURATIONS = ["", "5", "s", "1d", "1.5h", "-1s", "30m1h", "1h 30m", "1H", "90s\n", "٣s", "1s1s", "1234567s"]


@pytest.mark.parametrize(("text", "want_seconds"), DURATIONS.items())
def test_a_duration_is_read(text: str, want_seconds: int) -> None:
    assert parse_duration(text) == want_seconds
    assert Duration(text).seconds == want_seconds


@pytest.mark.parametrize("text", NOT_DURATIONS)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as 90s"):
        parse_duration(text)


QUANTITIES = {
    "0": 0.0, "1": 1.0, "500m": 0.5, "700m": 0.7, "1.5": 1.5, "0.1": 0.1, "3u": 3e-6, "5n": 5e-9, "2k": 2e3,
    "2.5M": 2.5e6, "1G": 1e9, "1T": 1e12, "1P": 1e15, "1E": 1e18, "1Ki": 1024.0, "256Mi": 2.0**28, "1.5Gi": 1.5 * 2**30,
    "1Ti": 2.0**40, "1Pi": 2.0**50, "1Ei": 2.0**60, "007": 7.0, "999999999.999999999": 999999999.999999999,
}  # fmt: skip
NOT_QUANTITIES = [
    "",
    "-1",
    "+1",
    "m",
    "Mi",
    "1 Gi",
    "1mi",
    "1K",
    "1kB",
    ".5",
    "1.",
    "1e3",
    "1/2",
    "٣",
    "1\n",
    "1000000000",
]


@pytest.mark.parametrize(("text", "want"), QUANTITIES.items())
def test_a_quantity_is_read(text: str, want: float) -> None:
    size = Thing.model_validate({"size": text}).size
    assert size == text
    assert size is not None
    assert size.amount == want


@pytest.mark.parametrize("text", NOT_QUANTITIES)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match=r"write a quantity such as 500m, 2 or 1\.5Gi|at least 1 character"):
        Thing.model_validate({"size": text})


class Thing(Params):
    """Something with everything."""

    name: str = "a"
    """Its name."""
    value: DataName | None = None
    """A value."""
    values: Annotated[Listed[DataName], Field(max_length=3)] = ()
    """More values."""
    parts: Listed["Thing"] = ()
    """What it is made of."""
    count: Annotated[int, Field(ge=1)] | None = None
    """How many."""
    wait: Annotated[Duration, within("1m", "1h")] = Duration("1m")
    """How long it waits."""
    size: Quantity | None = None
    """How large it is."""


@pytest.mark.parametrize("text", ["1m", "60s", "1h", "59m60s"])
def test_a_duration_within_its_bounds_is_taken(text: str) -> None:
    assert Thing.model_validate({"wait": text}).wait == text


@pytest.mark.parametrize("text", ["59s", "1h1s", "0s", "1", "one minute"])
def test_a_duration_outside_its_bounds_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="write a duration such as 90s, 5m or 1h30m, from 1m to 1h"):
        Thing.model_validate({"wait": text})


def test_the_values_that_parameters_name_are_found_with_their_paths() -> None:
    thing = Thing.model_validate({"value": "load", "parts": [{"name": "p", "values": ["freeCores", "rackPower"]}]})
    assert [*data_names(thing, ("spec",))] == [
        (("spec", "value"), "load"),
        (("spec", "parts", 0, "values", 0), "freeCores"),
        (("spec", "parts", 0, "values", 1), "rackPower"),
    ]
    assert isinstance(thing.value, DataName)


def test_a_status_of_a_newer_operator_is_read() -> None:
    status = Status.model_validate(
        {
            "servingGeneration": 3,
            "later": {"more": 1},
            "rules": [{"name": "a", "kind": "Filter", "uses": ["data.load"], "later": 1}],
            "warnings": [{"reason": "Conflict", "count": 2}],
        }
    )
    assert (status.serving_generation, status.observed_generation) == (3, None)
    assert (status.rules[0].name, status.rules[0].uses, status.rules[0].errors) == ("a", ("data.load",), None)


def test_a_whole_number_may_be_written_with_a_point() -> None:
    count = Thing.model_validate({"count": 2.0}).count
    assert (count, type(count)) == (2, int)
    with pytest.raises(ValidationError, match="integer"):
        Thing.model_validate({"count": 2.5})


def test_what_is_read_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Thing().name = "b"


def test_one_of_a_single_field_just_asks_for_it() -> None:
    check = exactly_one_of("value")
    assert (check.rule, check.message, check.message_of) == ("has(self.value)", "value is missing", None)
    assert check.holds(Thing(value=DataName("load")))
    assert not check.holds(Thing())


PATHS = {
    "": (),
    "spec": ("spec",),
    "spec.filters[2].expression": ("spec", "filters", 2, "expression"),
    "spec.match.podSelector.matchLabels[team/x]": ("spec", "match", "podSelector", "matchLabels", "team/x"),
    "[0]": (0,),
    "a['\\n']": ("a", "\n"),
}


@pytest.mark.parametrize(("want", "path"), PATHS.items())
def test_a_path_is_written_as_kubernetes_does(want: str, path: tuple[str | int, ...]) -> None:
    assert render_path(path) == want


def test_an_error_says_where_and_what_and_what_would_be_right() -> None:
    errors = (FieldError(("spec", "mode"), "'x' is wrong", "say y"), FieldError((), "no object"))
    assert str(InvalidObjectError(errors)) == "spec.mode: 'x' is wrong; say y\nno object"
    assert InvalidObjectError(iter(errors)).errors == errors

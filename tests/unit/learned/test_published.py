"""ConfigMaps of learned state: which rule they belong to, and what is written."""

from typing import Any

import pytest

from fairlead.api.names import POLICY_ANNOTATION
from fairlead.learned.content import PAIRS
from fairlead.learned.published import (
    LABEL,
    LATE,
    MEANING,
    PUBLISHED,
    LearningRule,
    Publication,
    config_map,
    decode,
    names_of,
)

RULE = LearningRule("where-it-works", "uid-1", "failures", "meaning", 7)
NAME = names_of(RULE, 3)[0]
EMPTY = '{"v":1,"types":[],"pairs":[]}'


def stored(body: Any, rv: str = "5") -> Any:
    return {**body, "metadata": {**body["metadata"], "resourceVersion": rv}}


def test_what_is_created_is_read() -> None:
    body = config_map(RULE, NAME, {PAIRS: EMPTY})
    assert body["metadata"]["name"] == "fairlead-learned-where-it-works-failures-3"
    assert body["metadata"]["labels"] == {LABEL: ""}
    (owner,) = body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("SchedulerExtenderPolicy", "where-it-works", "uid-1")
    found = decode(stored(body))
    assert found is not None
    assert (found.rule, found.number, found.rv, found.document.value, found.size) == (RULE, 3, "5", {}, len(EMPTY))


def test_a_publication_says_when_it_was_made_and_how_many_outcomes_were_late() -> None:
    body = config_map(RULE, NAME, {PAIRS: EMPTY}, Publication(1_800_000_000, 3))
    assert body["metadata"]["annotations"][PUBLISHED] == "2027-01-15T08:00:00Z"
    found = decode(stored(body))
    assert found is not None
    assert found.publication == Publication(1_800_000_000, 3)


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        ({}, Publication()),
        ({PUBLISHED: "today", LATE: "-1"}, Publication()),
        ({PUBLISHED: "2027-01-15T08:00:00", LATE: "9" * 16}, Publication()),
        ({PUBLISHED: "2027-01-15T08:00:00Z", LATE: "two"}, Publication(1_800_000_000, 0)),
    ],
)
def test_what_a_publication_does_not_say_is_not_known(annotations: dict[str, str], want: Publication) -> None:
    body = stored(config_map(RULE, NAME, {PAIRS: EMPTY}))
    body["metadata"]["annotations"] |= annotations
    found = decode(body)
    assert found is not None
    assert found.publication == want


def test_rules_whose_names_run_together() -> None:
    one, other = (LearningRule(policy, "u", name, "") for policy, name in (("a-b", "c"), ("a", "b-c")))
    (plain, longer), (same, another) = names_of(one, 0), names_of(other, 0)
    assert plain == same
    assert len({plain, longer, another}) == 3


def test_a_long_name_is_cut_and_ends_with_a_hash_and_its_number() -> None:
    rules = [LearningRule("p" * 200 + end, "u", "r" * 63, "") for end in "ab"]
    names = {names_of(rule, 11) for rule in rules}
    assert len({name for pair in names for name in pair}) == 2
    assert {len(name) for pair in names for name in pair} == {253}
    assert all(name.endswith("-11") for pair in names for name in pair)


@pytest.mark.parametrize(
    "missing", [POLICY_ANNOTATION, MEANING, "fairlead.dev/policy-generation", "fairlead.dev/policy-uid"]
)
def test_a_config_map_of_no_rule_is_none(missing: str) -> None:
    body = stored(config_map(RULE, NAME, {}))
    del body["metadata"]["annotations"][missing]
    assert decode(body) is None


@pytest.mark.parametrize("name", ["fairlead-learned-a-b", "fairlead-learned-a-b-\N{SUPERSCRIPT TWO}", f"a-{'9' * 16}"])
def test_a_config_map_without_a_number_is_none(name: str) -> None:
    body = stored(config_map(RULE, NAME, {}))
    body["metadata"]["name"] = name
    assert decode(body) is None


def test_a_config_map_without_data_cannot_be_read() -> None:
    body = stored(config_map(RULE, NAME, {}))
    del body["data"]
    found = decode(body)
    assert found is not None
    assert "cannot be read" in found.document.fault

"""Versions are what Kubernetes says, and the same in the engine."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.functions import extensions, semver
from fairlead.cel.values.errors import CelError
from oracle import literal, outcome_of
from oracle.comparison import thorough
from oracle.engine import Outcome
from oracle.own import ask_with_own

FACTS = json.loads((Path(__file__).parents[3] / "data/cel/kubernetes_library.json").read_text())
IMPLEMENTATIONS = {(d.name, d.parameters): d.implementation for d in extensions.DECLARATIONS}
VERSIONS = [text for text, _, _ in FACTS["later"]]
versions = st.one_of(
    st.sampled_from(VERSIONS),
    st.from_regex(
        r"(0|[1-9][0-9]{0,9})(\.(0|[1-9][0-9]{0,3})){2}(-[a-z][a-z0-9-]{0,4}(\.[1-9a-z]){0,3})?", fullmatch=True
    ),
)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(("text", "wants"), FACTS["semver"])
def test_a_version_is_what_kubernetes_says(text: str, wants: list[list[int] | None], normalize: bool) -> None:
    want = wants[normalize]
    assert semver.is_semver_string_bool(text, normalize) is (want is not None)
    if not normalize:
        assert semver.is_semver_string(text) is (want is not None)
    if want is None:
        with pytest.raises(CelError):
            semver.string_bool_to_semver(text, normalize)
        return
    value = semver.string_bool_to_semver(text, normalize)
    assert [semver.major(value), semver.minor(value), semver.patch(value)] == want


@pytest.mark.parametrize(("text", "earlier", "same"), FACTS["later"])
def test_versions_are_in_the_order_of_kubernetes(text: str, earlier: list[str], same: list[str]) -> None:
    one = semver.string_to_semver(text)
    others = {other: semver.string_to_semver(other) for other in VERSIONS}
    assert [other for other, value in others.items() if semver.is_later(one, value)] == earlier
    assert [other for other, value in others.items() if one == value] == same
    assert [other for other, value in others.items() if semver.compare_versions(one, value) == 0] == same
    assert {hash(others[other]) for other in same} == {hash(one)}
    later = {*others} - {*earlier, *same}
    assert {other for other, value in others.items() if semver.is_earlier(one, value)} == later


@given(versions)
def test_the_canonical_text_says_all(text: str) -> None:
    value = semver.string_to_semver(text)
    assert semver.string_to_semver(semver.semver_text(value)) == value
    assert semver.semver_text(semver.string_to_semver(semver.semver_text(value))) == semver.semver_text(value)


@pytest.mark.parametrize(
    "text", ["9223372036854775808.0.0", "1.2.3-" + "a" * 251, "1.2.3-" + "1." * 2_000, "v" * 5_000]
)
@pytest.mark.parametrize("normalize", [False, True])
def test_what_is_too_large_is_none(text: str, normalize: bool) -> None:
    assert not semver.is_semver_string_bool(text, normalize)


@pytest.mark.parametrize("normalize", [False, True])
def test_texts_are_the_same_in_the_engine(normalize: bool) -> None:
    for text, _ in FACTS["semver"]:
        ours = outcome_of(semver.is_semver_string_bool, text, normalize)
        assert ours == ask_with_own(f"isSemver({literal(text)}, {literal(normalize)})"), text


@pytest.mark.parametrize("name", ["major", "minor", "patch"])
@thorough
@given(text=versions)
def test_parts_are_the_same_in_the_engine(name: str, text: str) -> None:
    value = semver.string_to_semver(text)
    ours = outcome_of(IMPLEMENTATIONS[name, (extensions.SEMVER,)], value)
    assert ours == ask_with_own(f"semver({literal(text)}).{name}()")


@pytest.mark.parametrize("name", ["isGreaterThan", "isLessThan", "compareTo"])
@thorough
@given(one=versions, other=versions)
def test_comparisons_are_the_same_in_the_engine(name: str, one: str, other: str) -> None:
    values = semver.string_to_semver(one), semver.string_to_semver(other)
    ours = outcome_of(IMPLEMENTATIONS[name, (extensions.SEMVER, extensions.SEMVER)], *values)
    assert ours == ask_with_own(f"semver({literal(one)}).{name}(semver({literal(other)}))")


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("semver('1.2.3+a') == semver('1.2.3+b')", True),
        ("semver('v1.37', true) == semver('1.37.0')", True),
        ("semver('1.37.0-rc.1') == semver('1.37.0')", False),
        ("type(semver('1.2.3')) == kubernetes.Semver", True),
        ("quantity('2').isGreaterThan(quantity('1')) && semver('2.0.0').isGreaterThan(semver('1.0.0'))", True),
    ],
)
def test_they_behave_as_values_do(expression: str, want: bool) -> None:
    assert ask_with_own(expression) == Outcome(value=f"bool {want}")

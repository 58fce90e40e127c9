"""CEL's own conformance tests, as rules: on the engine and on lowered code, but for what the reviewed list names."""

from collections import Counter

import pytest

from conformance.cases import read_cases
from conformance.reviewed import FILE, Reviewed, faults, read_reviewed
from conformance.run import BOTH, LOWERED, REFUSED, Result, run

CASES_MIN = 2_700
LOWERED_MIN = 1_200


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {case.name: run(case) for case in read_cases()}


def test_each_case_is_as_the_specification_says_or_as_reviewed(results: dict[str, Result]) -> None:
    differences = {name: result.difference for name, result in results.items()}
    found = faults([*read_reviewed(FILE.read_text())], differences)
    assert not found, "\n".join(f"{fault}  {results[fault.partition(':')[0]].why}" for fault in found)


def test_lowered_code_never_does_what_neither_the_engine_nor_the_specification_does(results: dict[str, Result]) -> None:
    assert [result.why for result in results.values() if result.difference == LOWERED] == []


def test_the_cases_are_all_there_and_most_are_lowered(results: dict[str, Result]) -> None:
    counted = Counter(result.difference for result in results.values())
    assert len(results) >= CASES_MIN
    assert sum(result.is_lowered for result in results.values()) >= LOWERED_MIN
    assert counted[""] > 2 * counted[REFUSED]


FOUND = {"lists/a/one": "", "lists/a/two": REFUSED, "lists/b/one": BOTH}
LISTS = {
    "as reviewed": ("[refused] Why\nlists/a/two\n\n[both] Why\nlists/b/*\n", 0),
    "a case that nothing is said about": ("[refused] Why\nlists/a/two\n", 1),
    "a case that is refused no more": ("[refused] Why\nlists/a/*\n[both] Why\nlists/b/one\n", 1),
    "a case that is not there": ("[refused] Why\nlists/a/two\nlists/a/three\n[both] Why\nlists/b/one\n", 1),
    "a case under another heading": ("[refused] Why\nlists/a/two\nlists/b/one\n", 1),
    "a case that stands there twice": ("[refused] Why\nlists/a/two\nlists/a/two\n[both] Why\nlists/b/one\n", 1),
}


@pytest.mark.parametrize(("text", "count"), LISTS.values(), ids=LISTS)
def test_a_list_that_is_not_as_reviewed_is_told(text: str, count: int) -> None:
    assert len(faults([*read_reviewed(text)], FOUND)) == count


def test_a_heading_is_for_the_lines_below_it() -> None:
    assert [*read_reviewed("# words\n[refused] Why\na/b/*\n")] == [Reviewed("a/b/*", REFUSED)]

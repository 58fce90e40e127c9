"""The examples are what a user would apply: lint finds nothing to mend in them."""

from pathlib import Path

import pytest

from fairlead.cli.checks import Checker

_EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", _EXAMPLES, ids=lambda path: path.stem)
def test_lint_has_nothing_to_mend(path: Path) -> None:
    checker = Checker()
    checker.check(path.name, path.read_bytes())
    report = checker.report
    assert [finding for finding in report.findings if finding.severity != "note"] == []
    assert report.policies == 1
    assert report.ignored == 0
    assert {rule.evaluation for rule in report.rules} == {"Lowered"}
    assert path.read_text().startswith("# ")


def test_there_are_examples() -> None:
    assert len(_EXAMPLES) >= 6

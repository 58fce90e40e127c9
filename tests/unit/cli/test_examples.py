"""The examples are what a user would apply: lint has nothing to mend, and their tests miss a rule that goes."""

import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from generate import examples

from fairlead.cli.inputs.checker import Checker
from fairlead.cli.main import main
from fairlead.policy.lint.acceptances import ACCEPT
from support.suites import running

_FOLDER = Path(__file__).parents[3] / "examples"
# Those of the guide, and the agents of kube-safe-scheduler, which the guide has as one.
_GUIDE = sorted(_FOLDER.glob("*.yaml"))
_EXAMPLES = [*_GUIDE, *sorted(_FOLDER.glob("kube-safe-scheduler/*.yaml"))]
_BY_NAME = [pytest.param(path, id=path.stem) for path in _EXAMPLES]
_RULES = (
    *("filters", "scores", "preemption.protect", "binding.annotations", "binding.deviceShare", "binding.gang"),
    "match",
)


def _suite_of(path: Path) -> Path:
    return _FOLDER / "tests" / path.relative_to(_FOLDER).with_suffix(".test.yaml")


@pytest.mark.parametrize("path", _BY_NAME)
def test_lint_has_nothing_to_mend(path: Path) -> None:
    checker = Checker()
    checker.check(path.name, path.read_bytes())
    report = checker.report
    assert [one.message for one in report.findings if one.severity != "note"] == []
    assert report.policies == 1
    assert report.ignored == 0
    assert {rule.evaluation for rule in report.rules} == {"ByteCode"}
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("policy", [*_EXAMPLES, *sorted((_FOLDER.parent / "demo").rglob("*.yaml"))])
def test_no_warning_is_accepted(policy: Path) -> None:
    checker = Checker()
    checker.check(policy.name, policy.read_bytes())
    assert {one.severity for one in checker.finish().findings} <= {"note"}
    assert ACCEPT not in policy.read_text()


def test_only_pages_about_acceptances_show_one() -> None:
    folders = [_FOLDER.parent / name for name in ("docs", "charts", "examples", "demo")]
    shown = [one for folder in folders for one in folder.rglob("*") if one.is_file() and f"{ACCEPT}: " in _text(one)]
    assert [str(one.relative_to(_FOLDER.parent)) for one in shown] == ["docs/reference/lint.md"]


def _text(file: Path) -> str:
    return file.read_text(errors="replace")


def test_there_are_examples() -> None:
    assert len(_EXAMPLES) >= 12


def test_each_has_its_suite_and_no_suite_is_left_over() -> None:
    suites = sorted(one for one in (_FOLDER / "tests").rglob("*") if one.is_file())
    assert suites == sorted(_suite_of(path) for path in _EXAMPLES)
    assert [examples.suite_of(path) for path in _GUIDE] == [_suite_of(path) for path in _GUIDE]


def test_all_cases_pass_and_see_every_outcome_of_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = running.report(capsys, _FOLDER)
    assert [one["policy"] for one in found["coverage"] if 0 in one["outcomes"].values()] == []
    assert code == 0, found
    assert found["summary"]["suites"] == len(_EXAMPLES)
    assert {one["policy"] for one in found["coverage"]} == {path.stem for path in _EXAMPLES}


def test_lint_passes_over_the_suites(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(_FOLDER)]) == 0
    assert f"{len(_EXAMPLES)} policies, 0 errors, 0 warnings, " in capsys.readouterr().out


@pytest.mark.parametrize("path", _BY_NAME)
def test_a_rule_that_goes_is_missed(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = tmp_path / "tests" / f"{path.stem}.test.yaml"
    suite.parent.mkdir()
    # What is expected of a rule by name could not be asked any more, which would be an error and no failure.
    kept = yaml.safe_load(_suite_of(path).read_text())
    kept["policies"] = [f"../{Path(one).name}" for one in kept["policies"]]
    for one in kept["policies"]:
        shutil.copy(path.parent / Path(one).name, tmp_path)
    for case in kept["cases"]:
        case["expect"]["rejected"] = {
            node: {"reason": why} if isinstance(why, str) else {key: one for key, one in why.items() if key != "rule"}
            for node, why in case["expect"].get("rejected", {}).items()
        }
    suite.write_text(yaml.safe_dump(kept))
    for what, policy in _without_one(yaml.safe_load(path.read_text())):
        (tmp_path / path.name).write_text(yaml.safe_dump(policy))
        code, found = running.report(capsys, suite)
        assert code in (1, 2), f"no case misses {what}"
        # These name a rule that is not there any more.
        named = ("expect.protected", "learned[", "expect.group", "groups[")
        assert all(any(part in one["field"] for part in named) for one in found["findings"]), found["findings"]


def _without_one(policy: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The policy without one of its rules, for each of them."""
    found = []
    for where in _RULES:
        *above, last = where.split(".")
        holder = policy["spec"].get(above[0], {}) if above else policy["spec"]
        rules = holder.get(last, [])
        for at in range(len(rules)) if isinstance(rules, list) else [None] if rules else []:
            copy = yaml.safe_load(yaml.safe_dump(policy))
            within = copy["spec"][above[0]] if above else copy["spec"]
            if at is not None:
                del within[last][at]
            if not within.get(last) or at is None:
                del copy["spec"][above[0] if above else last]
            if last == "deviceShare":  # what names it would be a mistake
                for rules_of in ("filters", "scores"):
                    copy["spec"][rules_of] = [one for one in copy["spec"].get(rules_of, []) if last not in one]
            found.append((f"{where} {rules[at] if at is not None else ''}", copy))
    return found


def test_the_suite_in_the_reference_passes(tmp_path: Path) -> None:
    lines = (_FOLDER.parent / "docs" / "reference" / "test.md").read_text().splitlines()
    begin = lines.index("    policies: [../gpu-class.yaml]")
    suite = "\n".join(lines[begin : lines.index("", begin)])
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "page.test.yaml").write_text(textwrap.dedent(suite))
    (tmp_path / "gpu-class.yaml").write_bytes((_FOLDER / "gpu-class.yaml").read_bytes())
    assert running.run(tmp_path) == 0


def test_pages_say_what_examples_and_suites_say() -> None:
    for page, text in examples.pages().items():
        assert text == page.read_text(), f"{page.name} is stale: run make crds"
    assert sorted(examples.PAGES.iterdir()) == sorted(examples.pages())

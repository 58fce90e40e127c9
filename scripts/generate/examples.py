"""Writes into the guide's pages of examples what the policies, their suites and lint say, and the list of them.

What stands between the marks is written here; the rest of a page is written by people.
"""

from collections.abc import Iterator
from pathlib import Path

import yaml

from fairlead.cli.inputs.checker import Checker

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/guide/examples"
INDEX = PAGES / "index.md"
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
HEAD = """# Examples

Policies that people really need, each with the tests that keep it right. They are in the folder `examples/` of the
repository, the tests in `examples/tests/`. Take one, change labels and numbers to yours, and change its tests with it:
`fairlead test examples/tests` says what you broke. This page is written by `make crds`.

| example | what it is for |
| --- | --- |
"""


def pages() -> dict[Path, str]:
    """Every page as it should be."""
    return {INDEX: _index(), **{path: _page(example) for example in EXAMPLES for path in [page_of(example)]}}


def page_of(example: Path) -> Path:
    """The page of an example."""
    return PAGES / f"{example.stem}.md"


def suite_of(example: Path) -> Path:
    """The suite of an example."""
    return example.parent / "tests" / f"{example.stem}.test.yaml"


def _index() -> str:
    rows = [f"| [{_title(one)}]({one.stem}.md) | {_about(one)[0]} |" for one in EXAMPLES]
    return HEAD + "\n".join(rows) + "\n"


def _page(example: Path) -> str:
    text = page_of(example).read_text()
    for name, made in (("policy", _policy(example)), ("notes", _notes(example)), ("cases", _cases(example))):
        begin, end = f"<!-- {name}: written by make crds -->\n", f"<!-- end of {name} -->\n"
        before, there, rest = text.partition(begin)
        _, ends, after = rest.partition(end)
        if not there or not ends:
            raise ValueError(f"{page_of(example).name} has no place for {name}")
        text = f"{before}{begin}\n{made}\n{end}{after}"
    return text


def _title(example: Path) -> str:
    return page_of(example).read_text().splitlines()[0].removeprefix("# ")


def _about(example: Path) -> list[str]:
    """The paragraphs of the comment that a policy begins with."""
    lines = [line.removeprefix("#").strip() for line in _comment(example)]
    return [" ".join(one.split("\n")).strip() for one in "\n".join(lines).split("\n\n")]


def _comment(example: Path) -> list[str]:
    lines = example.read_text().splitlines()
    return lines[: next(at for at, line in enumerate(lines) if not line.startswith("#"))]


def _policy(example: Path) -> str:
    body = "\n".join(example.read_text().splitlines()[len(_comment(example)) :])
    about = "\n\n".join(_about(example))
    return f'{about}\n\n```yaml title="examples/{example.name}"\n{body}\n```\n'


def _notes(example: Path) -> str:
    said = [*_said(example)]
    if not said:
        return "`fairlead lint` has nothing to say about it.\n"
    return "`fairlead lint` notes:\n\n" + "\n".join(said) + "\n"


def _said(example: Path) -> Iterator[str]:
    checker = Checker()
    checker.check(example.name, example.read_bytes())
    by_reason: dict[str, list[str]] = {}
    for one in checker.finish().findings:
        rules = by_reason.setdefault(f"`{one.reason}` ({one.message})", [])
        if one.rule and one.rule not in rules:
            rules.append(one.rule)
    for said, rules in by_reason.items():
        yield f"- {said}: {', '.join(f'`{rule}`' for rule in rules)}" if rules else f"- {said}"


def _cases(example: Path) -> str:
    suite = suite_of(example)
    cases = [case["name"] for case in yaml.safe_load(suite.read_text())["cases"]]
    listed = "\n".join(f"- {case}" for case in cases)
    return f"The cases of `examples/tests/{suite.name}`, which see each of its rules come out both ways:\n\n{listed}\n"


def write() -> None:
    """Write what is generated here."""
    for path, text in pages().items():
        path.write_text(text)

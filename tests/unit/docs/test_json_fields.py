"""The reference of outputs for programs: every field that commands print is in it, and no other."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

from support.cli.json_outputs import fields, outputs
from support.docs.pages import CHECKOUT

PAGE: Final = (CHECKOUT / "docs" / "reference" / "json.md").read_text()
Field = tuple[str, ...]
COMMANDS: Final = (
    *("lint", "affinity", "test", "simulate", "diff", "explain", "explain --node", "explain --pending", "status"),
    *("shadow", "decisions", "data POLICY", "data", "devices", "learned", "groups", "version"),
)


def _sections() -> dict[str, dict[Field, str]]:
    """Return the meanings by field and command."""
    parts = re.split(r"^## fairlead (.*)\n", PAGE, flags=re.MULTILINE)
    rows = re.compile(r"^\| `([^`]*)` \| (.*) \|$", re.MULTILINE)
    return {
        name: {tuple(re.split(r"\.(?![^<]*>)", field)): meaning for field, meaning in rows.findall(text)}
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


DOCUMENTED: Final = _sections()


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sequence[Any]]:
    return outputs(tmp_path_factory.mktemp("outputs"))


def _known(command: str, within: Field = ()) -> Iterator[Field]:
    """Yield the documented fields within one, with those of the fields that a meaning refers to."""
    for field, meaning in DOCUMENTED[command].items():
        if field[: len(within)] != within:
            continue
        yield field
        if found := re.search(r"\bas in `fairlead ([^`]*)`", meaning):
            yield from _known(found[1], field)
        elif found := re.search(r"\bas `fairlead ([^`]*)`", meaning):
            yield from ((*field, *one) for one in _known(found[1]))
        elif found := re.search(r"\bas `([^`]*\[\])`(?: of `fairlead ([^`]*)`)?", meaning):
            of = tuple(found[1].split("."))
            yield from ((*field, *one[len(of) :]) for one in _known(found[2] or command, of))


def _is(field: Field, documented: Field) -> bool:
    return len(field) == len(documented) and all(
        name == known or known.startswith("<") for name, known in zip(field, documented, strict=True)
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_field_that_is_printed_is_documented(command: str, printed: dict[str, Sequence[Any]]) -> None:
    known = [*_known(command)]
    found = dict.fromkeys(field for one in printed[command] for field in fields(one))
    unknown = [".".join(field) for field in found if not any(_is(field, one) for one in known)]
    assert unknown == [], "add them to docs/reference/json.md"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_field_that_is_documented_is_printed(command: str, printed: dict[str, Sequence[Any]]) -> None:
    found = dict.fromkeys(field for one in printed[command] for field in fields(one))
    never = [".".join(one) for one in DOCUMENTED[command] if not any(_is(field, one) for field in found)]
    assert never == [], "no command prints them"


def test_no_field_is_documented_twice() -> None:
    for part in PAGE.split("\n## "):
        rows = re.findall(r"^\| `([^`]*)`", part, re.MULTILINE)
        assert sorted({*rows}) == sorted(rows)


def test_every_command_with_an_output_for_programs_is_documented(printed: dict[str, Sequence[Any]]) -> None:
    assert {*DOCUMENTED} == {*printed} == {*COMMANDS}
    modules = (CHECKOUT / "operator" / "fairlead" / "cli").rglob("*.py")
    giving = {one.stem.removesuffix("_command") for one in modules if "add_output(" in one.read_text()} - {"output"}
    assert giving == {name.split()[0] for name in COMMANDS} | {"render", "crd"}

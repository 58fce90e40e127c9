"""Why a text is no YAML, as a person sees it who looks at it: the parser says where it gave up, not what was meant."""

import re
from typing import Final

import yaml

from fairlead.cli.yaml.source import BrokenError, Source

TEMPLATE: Final = ("`{{` is a template that nobody has filled in", "let Helm render the file first")
_WHOLE: Final = "put a text that begins with a quote, a bracket or a brace in quotes as a whole, or under '|'"
_IN_QUOTES: Final = "put a text that holds ': ' in quotes, or under '|' on a line of its own"
_LINED_UP: Final = "begin the fields of one map in one column"
_HERE: Final = "\0"  # stands in a line where the parser gave up
# What the parser says, what stands in the line, what in the line before, and the cure.
_HINTS: Final[tuple[tuple[str, re.Pattern[str], re.Pattern[str], str], ...]] = tuple(
    (problem, re.compile(line), re.compile(above), cure)
    for problem, line, above, cure in (
        ("mapping values", "", r"\s*-[\w'\"]", "write a space after the '-' of the line above"),
        ("mapping values", "", r"\s*(- )?[\w.]+:[^\s:]\S*\s*$", "write a space after the ':' of the line above"),
        ("mapping values", rf"\s*[\w.]+{_HERE}:", ".*:", _LINED_UP),
        ("mapping values", "", "", _IN_QUOTES),
        ("tab", "", "", "indent with spaces"),
        (
            "cannot start any token",
            "",
            "",
            "indent with spaces, and put a text that begins with a tab, '%', '@' or '`' in quotes",
        ),
        ("expected key", rf"\s*{_HERE}[\w.]+:", "", _LINED_UP),
        ("expected key", "", "", _WHOLE),
        ("expected '-' indicator", "", "", "begin the items of one list in one column, each with '- '"),
        ("expected <block end>", "", "", _WHOLE),
        (
            "could not find expected ':'",
            "",
            r".*[|>][-+\d]*\s*$",
            "indent what stands under '|' or '>' more than its key",
        ),
        ("could not find expected ':'", "", "", "each line of a map is 'key: value'"),
        (
            "expected comment or line break",
            "",
            "",
            "a text under '|' or '>' begins on the next line; others that begin so must be in quotes",
        ),
        ("expected node content", "", "", "a value is missing here, or a text that must be in quotes"),
        ("undefined alias", "", "", "put a text that begins with '*' in quotes"),
        ("invalid Unicode character escape", "", "", "write the character itself"),
        ("unknown escape character", "", "", "write a backslash as \\\\, or use single quotes"),
    )
)
# What has nothing to do with YAML.
_STRANGE: Final = (
    (re.compile(r"\{\{"), *TEMPLATE),
    (re.compile(r"^[ \t]*+(?:<{7}|={7}|>{7})(?= |$)", re.MULTILINE), "this is a mark of a merge", "finish the merge"),
)


def explain_parse_error(error: yaml.MarkedYAMLError, source: Source, quoted: tuple[int, int] | None) -> BrokenError:
    """What is wrong, and where. `quoted` is where the last text in quotes began and ended."""
    said, context = error.problem or error.context or "this is no YAML", error.context or ""
    marks = (
        [error.context_mark, error.problem_mark]
        if "simple key" in context
        else [error.problem_mark, error.context_mark]
    )
    at = next((mark.index for mark in marks if mark), 0)
    line, column = source.place(at)
    end = at + len(source.line(line)) + 1
    for pattern, fault, cure in _STRANGE:
        if found := pattern.search(source.text, 0, end):
            begin = found.end() - len(found[0].lstrip())
            return BrokenError(begin, fault, cure)
    if "quoted scalar" in context and error.context_mark and "end of stream" in said:
        return BrokenError(error.context_mark.index, "this is no YAML: nothing closes this quote", "close it")
    if quoted and source.place(quoted[0])[0] < source.place(quoted[1])[0] == line:
        fault = f"this is no YAML: what closes this quote is only in line {line}, and more follows there"
        return BrokenError(quoted[0], fault, "close it where the text ends")
    if "flow" in context and error.context_mark and (opened := _opened(error.context_mark, source)):
        opened_at = ":".join(map(str, source.place(error.context_mark.index)))
        return BrokenError(at, f"this is no YAML: {said}", f"close the '{opened}' of {opened_at}, with ',' in between")
    before = source.line(line - 1) if line > 1 else ""
    here = source.line(line)
    return BrokenError(
        at, f"this is no YAML: {said}", _hint(said, f"{here[: column - 1]}{_HERE}{here[column - 1 :]}", before)
    )


def _opened(mark: yaml.Mark, source: Source) -> str:
    """The bracket that stands there."""
    character = source.text[mark.index : mark.index + 1]
    return character if character in ("[", "{") else ""


def _hint(said: str, here: str, before: str) -> str:
    for problem, line, above, hint in _HINTS:
        if problem in said and line.match(here) and above.match(before):
            return hint
    return ""

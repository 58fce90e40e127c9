"""Errors for text that is not YAML: the parser says where it gave up, a hint says what was probably meant."""

import re
from typing import Final

import yaml

from fairlead.cli.yaml.source import BrokenError, SourceText

TEMPLATE: Final = ("`{{` is a template that was not filled in", "let Helm render the file first")
_WHOLE: Final = "quote a string that begins with a quote, a bracket or a brace as a whole, or write it under '|'"
_IN_QUOTES: Final = "quote a string that contains ': ', or write it under '|' on a line of its own"
_LINED_UP: Final = "begin the fields of one map in one column"
_BLOCK: Final = "a block under '|' or '>' begins on the next line; quote any other string that begins so"
_TAB: Final = "indent with spaces, and quote a string that begins with a tab, '%', '@' or '`'"
_STAR: Final = "quote a string that begins with '*'; labels have no patterns, but operator: Exists takes any value"
_HERE: Final = "\0"  # marks in a line where the parser gave up
# Part of the parser's message, patterns of the line and of the line above, and the hint.
_HINTS: Final[tuple[tuple[str, re.Pattern[str], re.Pattern[str], str], ...]] = tuple(
    (problem, re.compile(line), re.compile(above), hint)
    for problem, line, above, hint in (
        ("mapping values", "", r"\s*-[\w'\"]", "write a space after the '-' of the line above"),
        ("mapping values", "", r"\s*(- )?[\w.]+:[^\s:]\S*\s*$", "write a space after the ':' of the line above"),
        ("mapping values", rf"\s*[\w.]+{_HERE}:", ".*:", _LINED_UP),
        ("mapping values", "", "", _IN_QUOTES),
        ("cannot start any token", "", "", _TAB),
        ("alphabetic or numeric", rf".*[*]{_HERE}", "", _STAR),
        ("expected key", rf"\s*{_HERE}[\w.]+:", "", _LINED_UP),
        ("expected key", "", "", _WHOLE),
        ("find expected ':'", "", r".*[|>][-+\d]*\s*$", "indent the text under '|' or '>' more than its key"),
        ("expected comment or line break", "", "", _BLOCK),
        ("expected node content", "", "", "a value is missing here, or a string that must be quoted"),
    )
)
# Mistakes that have nothing to do with YAML.
_STRANGE: Final = (
    (re.compile(r"\{\{"), *TEMPLATE),
    (re.compile(r"^[ \t]*+(?:<{7}|={7}|>{7})(?= |$)", re.MULTILINE), "this is a conflict marker", "finish the merge"),
)


def explain_parse_error(error: yaml.MarkedYAMLError, source: SourceText, quoted: tuple[int, int] | None) -> BrokenError:
    """Return what is wrong and where. `quoted` is the start and the end of the last quoted string."""
    said, context = error.problem or error.context or "the parser gave up", error.context or ""
    marks = [error.problem_mark, error.context_mark]
    at = next((mark.index for mark in (reversed(marks) if "simple key" in context else marks) if mark), 0)
    line, column = source.place(at)
    here = source.line(line)
    for pattern, fault, hint in _STRANGE:
        if found := pattern.search(source.text, 0, at + len(here) + 1):
            return BrokenError(found.end() - len(found[0].lstrip()), fault, hint)
    if "quoted scalar" in context and error.context_mark and "end of stream" in said:
        return BrokenError(error.context_mark.index, "this is not YAML: this quote is never closed", "close it")
    if quoted and source.place(quoted[0])[0] < source.place(quoted[1])[0] == line:
        fault = f"this is not YAML: this quote is closed only in line {line}, with more text after it"
        return BrokenError(quoted[0], fault, "close it where the string ends")
    begin = error.context_mark.index if "flow" in context and error.context_mark else len(source.text)
    if (opened := source.text[begin : begin + 1]) in ("[", "{"):
        opened_at = ":".join(map(str, source.place(begin)))
        hint = f"close the '{opened}' of {opened_at}, with ',' between items"
    else:
        above = source.line(line - 1) if line > 1 else ""
        hint = _hint(said, f"{here[: column - 1]}{_HERE}{here[column - 1 :]}", above)
    return BrokenError(at, f"this is not YAML: {said}", hint)


def _hint(text: str, here: str, before: str) -> str:
    for problem, line, above, hint in _HINTS:
        if problem in text and line.match(here) and above.match(before):
            return hint
    return ""

"""One expression on both sides."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from unittest.mock import patch

from cel_expr_python import cel

from differential.cases import Case
from differential.outcomes import Outcome, on_engine, on_lowered, same
from differential.slots import apart
from differential.world import env, typed, variable
from fairlead.cel.functions import conversions
from fairlead.cel.lowering.program import Program
from fairlead.cel.syntax.ast import Checked
from fairlead.cel.values.errors import Kind, NotLoweredError


@dataclass(frozen=True, slots=True)
class Result:
    """Of a case: what it is made of, whether it was lowered, and where both sides differ."""

    checked: Checked | None
    outcomes: tuple[Outcome, ...] = ()
    why_not: str = ""
    differences: tuple[str, ...] = ()
    known: tuple[str, ...] = ()  # why there are others, that are not counted as differences


def run(one: Case) -> Result:
    """Compare: hoisted and plain against the engine."""
    texts = dict(one.variables)
    try:
        compiled = env().compile(one.text)
    except Exception as error:  # noqa: BLE001 - the engine's own
        return Result(None, why_not=str(error))
    checked = typed(one.text, compiled)
    program = Program(checked, {name: variable(text) for name, text in texts.items()})
    expanded = compiled
    if "variables." in one.text:
        try:
            expanded = env().compile(_expanded(_expanded(one.text, texts), texts))
        except Exception as error:  # noqa: BLE001 - too deep
            return Result(None, why_not=str(error))
    try:
        program.check()
    except NotLoweredError as error:
        return Result(checked, why_not=str(error) or "?")
    wants: list[Outcome] = []
    differences, known = [], []
    for index in one.facts:
        want = on_engine(expanded, index)
        wants.append(want)
        for name, got in (("hoisted", on_lowered(program, index)), ("plain", on_lowered(program, index, plain=True))):
            if same(want, got):
                continue
            if reason := _reason(expanded, program, index, want, got):
                known.append(reason)
            else:
                differences.append(f"{one} on {index} {name}: engine {want}, lowered {got}")
    return Result(checked, tuple(wants), differences=tuple(differences), known=tuple(known))


def _reason(compiled: cel.Expression, program: Program, index: int, want: Outcome, got: Outcome) -> str:
    """Why both sides differ, if it is no fault of ours."""
    if got.error == f"abort {Kind.COST}":  # the engine counts loop steps only
        return "it costs too much" if program.is_metered else ""
    if not want.error and _without_sign(want.value) == _without_sign(got.value):
        return "two NaNs met, and the processor chose which one it kept"
    with patch.object(conversions, "TEXT_MAX", sys.maxsize):
        if same(want, on_lowered(program, index, plain=True)):
            return "the engine converts texts of any length"
    if same(on_engine(env().deserialize(apart(compiled.serialize())), index), got):
        return "slots: the engine says the same once its variables do not share them"
    return ""


def _without_sign(value: str) -> str:
    return value.replace("-nan", "nan")


def _expanded(text: str, texts: Mapping[str, str]) -> str:
    for name, value in texts.items():
        text = text.replace(f"variables.{name}", f"({value})")
    return text

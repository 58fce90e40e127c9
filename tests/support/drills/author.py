"""The worst that somebody can write who may write policies, and the pods that belong to it."""

from collections.abc import Mapping
from typing import Any, Final

from support.policy import hostile

SCHEDULER: Final = "hostile"
"""A name of his own."""
_LONG: Final = 250_000
"""Characters: one object has at most 256 KiB of annotations."""
_NOTE: Final = "pod.metadata.annotations[?'example.com/note'].orValue('')"
_NUMBERS: Final = ("double", "int", "timestamp", "duration")
NOTES: Final[Mapping[str, str]] = {
    "numbers": "1" * _LONG + "x",
    "short-numbers": "1" * 1_000 + "x",
    "times": "0" * 4_301 + "2027-01-01T00:00:00Z",
    "zones": "eu-1a," * (_LONG // 6),
    "patterns": "é" * (_LONG // 2),
    "texts": "a" * _LONG,
}
"""Annotations of pods; of other policies those of `short-numbers`."""


def worst(turn: int) -> Mapping[str, dict[str, Any]]:
    """The specs by their names, each time with other texts, so that nothing of them is known yet."""
    blanks = " " * 2_030
    chain = f"cel.bind(x,'aaaaaaa{turn}'," + "cel.bind(x,x+x+x+x+x," * 22 + "x" + ")" * 23 + ".size()>0"
    grows = f"'{'a' * 900}{turn}'" + ".replace('a','aaaaaaaaaaaaaaaaaaaa')" * 28
    specs = {
        "blanks": hostile.everywhere(f"f{turn}({blanks}a{blanks}+ ;")["spec"],
        "constants": _rules(grows + ".size()>0"),
        "conditions": _conditions(f"lists.range(1000000).distinct().size()>pod.metadata.name.size()+{turn}"),
        "ranges": _rules(f"lists.range(1000).map(i,i+{turn}).distinct().size()>pods.size()"),
        "chains": _rules(chain),
        "numbers": _rules(*(f"string({kind}({_NOTE}))!='{turn}'" for kind in _NUMBERS)),
        "short-numbers": _rules(*(f"string({kind}({_NOTE}))!='{turn}'" for kind in _NUMBERS)),
        "times": _rules(*(f"timestamp({_NOTE}+'{' ' * at}')>now" for at in range(turn % 7 + 1))),
        "zones": _rules(f"node.metadata.name in {_NOTE}.split(',').map(z,z+'{turn}').distinct()"),
        "patterns": _rules(*(rf"{_NOTE}.matches(r'(é|x|{turn})*[a-z]{{20}}{at}$')" for at in range(32))),
        "texts": _rules(f"({_NOTE}+{_NOTE}).replace('a','{'b' * 900}{turn}').size()>node.metadata.name.size()"),
        "loops": _rules(f"pods.exists(p,p.metadata.labels.exists(k,k+p.metadata.name=='{turn}'))"),
        "brackets": _rules("(" * 1_990 + f"{turn}>0" + ")" * 1_990),
        "soup": hostile.everywhere(hostile.soup(turn).replace("\U0001f600", "é"))["spec"],
        "too-large-patterns": _rules(*(rf"{_NOTE}.matches(r'\pL{{{900 + at}}}{turn}')" for at in range(32))),
        "amounts": hostile.everywhere(hostile.EXPRESSIONS["different comparisons"].replace("'a'", f"'{turn}'"))["spec"],
    }
    return {name: {**spec, "schedulerName": SCHEDULER, **_matched(name, spec)} for name, spec in specs.items()}


def tame(turn: int) -> Mapping[str, dict[str, Any]]:
    """Return as many policies of about the same length, for the same pods, with nothing wrong in them."""
    made = {}
    for name, spec in worst(turn).items():
        text = "a" * min(4_000, len(str(spec)) // 64)
        made[name] = {**_rules(f"'{text}{turn}'!=node.metadata.name"), "schedulerName": SCHEDULER, **_matched(name, {})}
    return made


def _matched(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Each is for pods of its own, so that none is hidden behind another."""
    return {"match": {**spec.get("match", {}), "podSelector": {"matchLabels": {"worst": name}}}}


def _conditions(expression: str) -> dict[str, Any]:
    return {"match": {"conditions": [{"name": f"c{at}", "expression": expression} for at in range(16)]}}


def _rules(*expressions: str) -> dict[str, Any]:
    """As many filters and scores as there may be."""

    def rules(prefix: str, tail: str) -> list[dict[str, Any]]:
        texts = (expressions[at % len(expressions)] for at in range(32))
        return [{"name": f"{prefix}{at}", "expression": text + tail} for at, text in enumerate(texts)]

    return {"filters": rules("f", ""), "scores": rules("s", "?1.0:0.0")}


def pod(name: str, number: int) -> dict[str, Any]:
    """One that the policy of this name is for."""
    spec = {
        "schedulerName": SCHEDULER,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "main"}],
    }
    note = NOTES.get(name, NOTES["short-numbers"])
    metadata = {"name": f"{name}-{number}", "labels": {"worst": name}, "annotations": {"example.com/note": note}}
    return {"metadata": metadata, "spec": spec}

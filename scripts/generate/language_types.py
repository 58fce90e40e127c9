"""Writes the types of the rule language anew from the models of the installed `kubernetes` client."""

import json
import re
from pathlib import Path

from kubernetes.client import models

TARGET = Path(__file__).parents[2] / "operator/fairlead/cel/values/kubernetes.json"
ROOTS = ("V1Pod", "V1Node", "V1Namespace")
SCALARS = {"str": "string", "bool": "bool", "int": "int", "float": "double", "datetime": "timestamp", "object": "dyn"}
LEFT_OUT = {"managedFields"}  # nobody keeps them: they are half of an object's bytes


def message(model: str) -> str:
    """The name of a message: that of its Go type."""
    return re.sub(r"^(Core)?V\d+", "", model)


def type_of(text: str) -> str:
    """The type of a field in the notation of `fairlead.cel.values.schema`."""
    if text in SCALARS:
        return SCALARS[text]
    if found := re.fullmatch(r"[Ll]ist\[(.+)\]", text):
        return f"list<{type_of(found[1])}>"
    if found := re.fullmatch(r"[Dd]ict[\[(]str, (.+)[\])]", text):
        return f"map<{type_of(found[1])}>"
    return message(text)


def messages() -> dict[str, dict[str, str]]:
    """All messages that can be reached from the roots: name of the field -> its type."""
    found: dict[str, dict[str, str]] = {}
    waiting = list(ROOTS)
    while waiting:
        model = waiting.pop()
        if message(model) in found:
            continue
        cls = getattr(models, model)
        fields: dict[str, str] = {cls.attribute_map[name]: text for name, text in cls.openapi_types.items()}
        fields = {name: text for name, text in sorted(fields.items()) if name not in LEFT_OUT}
        found[message(model)] = {name: type_of(text) for name, text in fields.items()}
        waiting += [name for text in fields.values() for name in re.findall(r"\w*V\d\w+", text)]
    return dict(sorted(found.items()))


def as_text() -> str:
    """Text of the file."""
    return json.dumps(messages(), indent=0) + "\n"


def write() -> None:
    """Write what is generated here."""
    TARGET.write_text(as_text())

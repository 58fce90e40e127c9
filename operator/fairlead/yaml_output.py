"""YAML that every reader takes for the same value.

PyYAML leaves bare what YAML 1.1 takes for text. The Go readers of kubectl and Helm take more of it for numbers, such as
`12e3`, `089` and `0o17`, and `y` and `n` for booleans: a hash of twelve hexadecimal digits is such a text one time in
three hundred, and an annotation that holds it cannot be applied.
"""

import re
from typing import Any, Final

import yaml

WIDTH: Final = 120
_GO_NUMBER: Final = re.compile(
    r"^(?:[-+]?(?:\.[0-9_]+|[0-9][0-9_]*+(?:\.[0-9_]*+)?)(?:[eE][-+]?[0-9_]+)?|[-+]?0[xXoObB][0-9a-fA-F_]+)$"
)
_GO_BOOL: Final = re.compile(r"^[yYnN]$")


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Dumper that writes equal objects in full instead of pointing to the first."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


class _BlockDumper(_Dumper):
    """Dumper that writes texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _GO_NUMBER, [*"-+.0123456789"])
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", _GO_BOOL, [*"yYnN"])
_BlockDumper.add_representer(str, _text)


def to_yaml(value: Any, *, sort_keys: bool = False, blocks: bool = False, width: int = WIDTH) -> str:
    """Write plain data as YAML, the same bytes for the same data."""
    dumper = _BlockDumper if blocks else _Dumper
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=sort_keys, width=width, default_flow_style=False)
    return text

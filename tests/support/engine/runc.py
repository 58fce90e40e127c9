"""Stands before runc where the machine itself lacks a capability: no container can be given it, and runc would refuse.

Called by a shell script as `python runc.py RUNC ARGUMENT...`, with the arguments of runc.
"""

import json
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

LACKING = "CAP_SYS_RESOURCE"
_BIT = 24


def is_lacking(status: str) -> bool:
    """Tell from a /proc/PID/status that the process can never have it."""
    bounding = next(line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:"))
    return not int(bounding, 16) >> _BIT & 1


def file_of(arguments: Sequence[str]) -> Path | None:
    """The file that says which capabilities the process gets; None where runc starts none."""
    values = dict(pairwise(arguments)) | dict(one.split("=", 1) for one in arguments if "=" in one)
    if {"create", "run"} & {*arguments}:
        return Path(values.get("--bundle") or values.get("-b") or ".", "config.json")
    file = values.get("--process") or values.get("-p") if "exec" in arguments else None
    return Path(file) if file else None


def without(document: str) -> str:
    """The same container or process without the capability."""
    parsed = json.loads(document)
    capabilities = parsed.get("process", parsed).get("capabilities") or {}
    for kind, names in capabilities.items():
        capabilities[kind] = [name for name in names if name != LACKING]
    return json.dumps(parsed)


def main(runc: str, arguments: Sequence[str]) -> None:
    """Become runc."""
    file = file_of(arguments)
    if file and is_lacking(Path("/proc/self/status").read_text()):
        file.write_text(without(file.read_text()))
    os.execv(runc, [runc, *arguments])  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

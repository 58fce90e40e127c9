"""Time at which a command judges."""

import time
from collections.abc import Sequence

from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.data_file import FileValues
from fairlead.policy.nodes.annotated_values import dated_moment, moment
from fairlead.simulation.snapshot import Snapshot


def time_of(text: str | None, snapshot: Snapshot | None, values: Sequence[FileValues]) -> tuple[int, bool]:
    """Return the time of --now, else that of the files, else the present, and whether it is that of the files."""
    current = time.time_ns()
    if text is not None:
        found = dated_moment(text)  # 2027 is meant as a year, not as seconds
        if found is None:
            example = timestamp_to_string(current // 10**9 * 10**9)
            raise CommandError(f"--now {text!r} is not a time; write it as {example}")
        return found, False
    newest = None if snapshot is None else snapshot.newest_time()
    at = None if newest is None else moment(newest)
    if at is None:
        return current, False
    measured = [one.document.at for one in values if one.document.at is not None and one.document.at <= current]
    return min(current, max([at, *measured])), True

"""Writes the reference page of the conditions from the closed list of their reasons."""

from collections.abc import Iterator
from pathlib import Path

from fairlead.control.status.reasons import REASONS

PAGE = Path(__file__).parents[2] / "docs/reference/conditions.md"
HEAD = """# Conditions

What `kubectl describe sep NAME` says of a policy, and `fairlead status` of all of them. This page is written by
`make crds`.

| condition | says |
| --- | --- |
| `Accepted` | whether the policy, and the scheduler that it names, can be had |
| `Compiled` | whether its rules compile |
| `Programmed` | whether what was written is what happens: in every replica, and in the scheduler |
| `Ready` | all three; it repeats the first that is not so, with its reason and message. Wait for this one |
| `Reconciling` | something is on its way that passes by itself (kstatus: in progress) |
| `Stalled` | it stays so until somebody changes something (kstatus: failed) |

`observedGeneration` of each is the generation that it was said about. `servingGeneration` of the status is the one that
answers the scheduler.

## Reasons

The words never change; the message beside them says what it is about this time.
"""


def page() -> str:
    """The page as it should be."""
    return "\n".join([HEAD, *_reasons()])


def _reasons() -> Iterator[str]:
    yield "| reason | of | means | what to do |"
    yield "| --- | --- | --- | --- |"
    for reason, one in REASONS.items():
        yield f"| `{reason}` | {one.on} | {one.means} | {one.cure or 'nothing'} |"
    yield ""


def write() -> None:
    """Write what is generated here."""
    PAGE.write_text(page())

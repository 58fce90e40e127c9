"""State of a group, by its placed pods and what its holder has published."""

from typing import Literal

from fairlead.groups.group import Group, group_hash
from fairlead.groups.turns import Turns

GroupState = Literal["Started", "Turn", "Resting", "Waiting"]
"""Started: a placed pod of it lives. Turn: its members are held, or their Bindings are being posted. Resting: it rests
after an attempt that failed. Waiting: it waits for members, or for the turn."""


def state_of(group: Group, turns: Turns, now_s: float, *, is_placed: bool) -> GroupState:
    """Return the state of a group at a unix time. A turn or a rest that is over counts no more."""
    if is_placed:
        return "Started"
    turn = turns.turn
    if turn is None and not turns.rests:
        return "Waiting"
    asked = group_hash(group)
    if turn is not None and turn.group == asked and now_s < turn.until:
        return "Turn"
    rest = turns.rests.get(asked)
    return "Waiting" if rest is None or now_s >= rest.until else "Resting"

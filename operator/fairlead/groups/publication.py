"""Publication of a holder: its turn, rests and preferred group by unix time and by hash."""

from fairlead.groups.current_turn import Turn
from fairlead.groups.group import group_hash
from fairlead.groups.members import GroupIndex
from fairlead.groups.turn_order import TurnOrder
from fairlead.groups.turns import RESTS_MAX, PreferredGroup, PublishedRest, PublishedTurn, Turns
from fairlead.time_units import SECOND_NS


def turns_of(turn: Turn | None, order: TurnOrder, index: GroupIndex, offset_s: float) -> Turns:
    """Return what is published; the offset is what a moment in seconds lacks to its unix time."""

    def unix_s(moment: int) -> float:
        return round(moment / SECOND_NS + offset_s, 1)

    longest = sorted(order.rests.current.items(), key=lambda item: item[1].until, reverse=True)[:RESTS_MAX]
    return Turns(
        None
        if turn is None
        else PublishedTurn(
            group_hash(turn.group),
            since=unix_s(turn.began),
            until=unix_s(turn.ends),
            held_members=turn.count(),
            size=turn.size(index),
            attempt=turn.attempt,
            nodes={one.call.uid: one.call.node for one in turn.counted()},
        ),
        {group_hash(group): PublishedRest(unix_s(rest.until), rest.attempt) for group, rest in longest},
        None if order.preferred is None else PreferredGroup(group_hash(order.preferred), unix_s(order.until)),
    )


def version_of(turn: Turn | None, order: TurnOrder, index: GroupIndex) -> tuple[object, ...]:
    """Return a value that is another one when something else is to be published."""
    counted = () if turn is None else tuple(one.call.id for one in turn.counted())
    shown = None if turn is None else (turn.group, turn.attempt, turn.ends, counted, turn.count(), turn.size(index))
    return shown, order.rests.revision, order.preferred, order.until

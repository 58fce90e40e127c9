"""Attacks over the wire: the short run. `make fuzz` is the long one."""

from pathlib import Path

from fuzz.wire import STATUSES, wire
from scripted.loop import in_loop

ATTACKS = 250
IDLE = 50


@in_loop
async def test_no_attack_keeps_the_next_right_call_from_being_served(tmp_path: Path) -> None:
    async with wire(tmp_path, "unit", idle=IDLE) as one:
        for _ in range(ATTACKS):
            await one.one()
        await one.silent_are_served()
    assert {*one.statuses} <= STATUSES
    assert {200, 400, 403, 404, 405} <= {*one.statuses}
    assert {name for name in one.attacks if ":" not in name} == {"_bodies", "_heads", "_half", "_noise", "_strangers"}

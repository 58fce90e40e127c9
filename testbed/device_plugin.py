"""A device plugin of the real node: cards that are only numbers, whose memory pods share.

It runs beside the kubelet, in the sandbox, whose /var/lib is its own, with the administrator's rights.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from testbed import build, certs, process
from testbed.api import Api, wait_for
from testbed.layout import Layout
from testbed.node_config import NODE
from testbed.process import Component
from testbed.sandbox import Sandbox
from testbed.supervisor import Supervisor
from testbed.versions import program

NAME = "device-plugin"
MEMORY, COUNT = "example.org/gpu-mem", "example.org/gpu-count"
CARD_FILE = "/run/device-plugin/card"
"""In a container of a plugin that matches exactly: the cards that its pod was granted."""
Match = Literal["gpushare", "exact"]
_REGISTERED_WITHIN_S = 30.0


class DevicePlugin:
    """The device plugin of a cluster's real node."""

    def __init__(self, layout: Layout, api: Api) -> None:
        self._layout, self._api = layout, api
        self._sick = layout.folder / f"{NAME}.sick"

    def up(self, match: Match, *, cards: int = 2, units: int = 8) -> None:
        """Start it anew, and wait until the node has what it offers: `units` of memory on each of its cards."""
        self.stop()
        executable = build.build([program(NAME)])[NAME]
        authority = certs.Authority(self._layout.folder / "pki")
        pair = authority.issue(NAME, "fairlead-testbed-device-plugin", organizations=["system:masters"])
        options = {
            "match": match,
            "cards": cards,
            "units": units,
            "memory": MEMORY,
            "count": COUNT,
            "sick": self._sick,
            "node": NODE,
            "server": self._layout.server,
            "ca": authority.certificate,
            "cert": pair.certificate,
            "key": pair.key,
        }
        log = process.log_of(self._layout.folder, NAME)
        before = _size(log)  # what an earlier one wrote
        Supervisor(self._layout.folder, Sandbox(self._layout.folder).enter).ensure(
            Component(NAME, [str(executable), *(f"-{name}={value}" for name, value in options.items())]),
            # the kubelet has asked for the devices of both; what the node says may still be of an earlier plugin
            lambda: log.exists() and log.read_bytes()[before:].count(b"sick cards: ") >= 2,
            within_s=_REGISTERED_WITHIN_S,
        )
        wanted = (cards * units, cards)
        sick = len(self._sick.read_text().split()) if self._sick.exists() else 0
        self.wait_for_amounts(capacity=wanted, allocatable=((cards - sick) * units, cards - sick))

    def sicken(self, cards: Sequence[int]) -> None:
        """Have exactly these cards sick."""
        partial = self._sick.with_suffix(".partial")
        partial.write_text(" ".join(map(str, cards)))
        partial.rename(self._sick)

    def amounts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Memory and cards that the node says it has, and those of it that pods may be given."""
        status = self._api.get(f"/api/v1/nodes/{NODE}")["status"]
        capacity, allocatable = (
            (int(status[kind].get(MEMORY, 0)), int(status[kind].get(COUNT, 0))) for kind in ("capacity", "allocatable")
        )
        return capacity, allocatable

    def wait_for_amounts(self, *, capacity: tuple[int, int], allocatable: tuple[int, int]) -> None:
        """Wait until the node says so, which it does every ten seconds."""
        what = f"the node to have {capacity} of {MEMORY} and {COUNT}, {allocatable} of it allocatable"
        wait_for(what, lambda: self.amounts() == (capacity, allocatable))

    def says(self) -> str:
        """Its log so far."""
        log = process.log_of(self._layout.folder, NAME)
        return log.read_text(errors="replace") if log.exists() else ""

    def stop(self) -> None:
        """End the process; the node goes on saying what it has, none of which is allocatable."""
        process.kill(found for found in [process.find(self._layout.folder, NAME)] if found)

    def down(self) -> None:
        """Leave nothing of it that lives."""
        self.stop()
        self._sick.unlink(missing_ok=True)


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0

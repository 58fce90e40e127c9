"""The protocol of providers: each way to have a cluster has these."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a cluster and how it fares."""

    name: str
    state: str
    detail: str = ""

    @property
    def is_well(self) -> bool:
        """Tell whether nothing has to be done about it."""
        return self.state == "running"


class Provider(Protocol):
    """Raises one cluster, heals it, and takes it down. What it did not start is left alone."""

    cluster: str

    def up(self) -> None:
        """Raise the cluster, or heal what is broken of it."""

    def down(self) -> None:
        """Leave nothing of it."""

    def status(self) -> Sequence[Part]:
        """Its parts; none when it is down."""

    def kubeconfig(self) -> Path:
        """The file that lets kubectl and everything else reach it."""

    def programs(self) -> Sequence[Path]:
        """The folders of its kubectl and the like, for PATH."""

    def load(self, archive: Path) -> None:
        """Bring the images of an archive (docker save, OCI) to its real nodes."""

    def logs(self) -> dict[str, str]:
        """Logs of each component, by its name."""

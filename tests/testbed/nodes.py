"""Makes the objects of kwok nodes from a template, the same for the same seed. Pure but for `ensure`."""

from dataclasses import dataclass
from pathlib import Path

from testbed.api import Object


@dataclass(frozen=True, slots=True)
class Template:
    """What nodes are made from."""


def read_template(path: Path) -> Template:
    raise NotImplementedError


def default_template() -> Template:
    raise NotImplementedError


def make(count: int, template: Template, *, seed: int = 0) -> list[Object]:
    raise NotImplementedError


def ensure(folder: Path, kubeconfig: Path, wanted: list[Object]) -> None:
    raise NotImplementedError

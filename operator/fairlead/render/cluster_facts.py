"""What is known of the cluster when a scheduler is rendered."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

ALL_UP_TO: Final = 1000
ALL_AGAIN_UP_TO: Final = 800
"""A change rolls the scheduler: a cluster that breathes around a thousand nodes must not cause one each time."""


def percentage(wanted: str, nodes: int | None, before: bool | None) -> int | None:  # noqa: FBT001 - a state, not a switch
    """Return the percentageOfNodesToScore for a setting, or None for the scheduler's own choice.

    `before` is what `samples_all_nodes` returned last.
    """
    if wanted != "Auto":
        return int(wanted.removesuffix("%"))
    if nodes is None:
        return None if before is False else 100
    return 100 if nodes <= (ALL_AGAIN_UP_TO if before is False else ALL_UP_TO) else None


def samples_all_nodes(config: Mapping[str, Any] | None) -> bool | None:
    """Whether a scheduler that has this configuration asks all nodes; None where `Auto` has not decided yet."""
    if config is None:
        return None
    return {100: True, None: False}.get(config.get("percentageOfNodesToScore"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """All of it."""

    namespace: str
    """Where the operator is, and the schedulers that it manages."""
    url: str
    """Where schedulers call it, such as https://fairlead.fairlead-system.svc:8443."""
    ca_bundle: str
    """The authorities of its certificate, as PEM. A scheduler reads them once, when it starts."""
    server_versions: tuple[str, ...]
    """What each API server calls its `gitVersion`."""
    nodes: int | None
    """None while they are being listed: then their number decides nothing."""
    asked_all: bool | None = None
    """What `sampling.asked_all` says of the configuration that is there."""


_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-(alpha|beta|rc)\.(\d+))?(?=[-+.]|$)")
_STAGES = ("alpha", "beta", "rc", None)


def image_tag(git_versions: Iterable[str]) -> str:
    """The tag of the lowest version that API servers say of themselves. Raises ValueError.

    What vendors append is cut off. Of a build between two pre-releases the earlier one is meant: it has an image.
    """
    return "v" + min(map(_parsed, git_versions))[-1]


def _parsed(said: str) -> tuple[int, int, int, int, int, str]:
    found = _VERSION.match(said)
    if found is None or not any(map(int, found.group(1, 2))):
        raise ValueError(f"{said[:40]!r}, the version of the API server, cannot be read")
    major, minor, patch = map(int, found.group(1, 2, 3))
    stage, count = found[4], int(found[5] or 0)
    tag = f"{major}.{minor}.{patch}" + (f"-{stage}.{count}" if stage else "")
    return major, minor, patch, _STAGES.index(stage), count, tag

"""Facts about the cluster that rendering a scheduler needs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

ALL_UP_TO: Final = 1000
ALL_AGAIN_UP_TO: Final = 800
"""Hysteresis: a change rolls the scheduler, so a cluster that varies around a thousand nodes must not cause one."""


def percentage(
    wanted: str,
    nodes: int | None,
    before: bool | None,  # noqa: FBT001 - a state, not a switch
    *,
    asks_all: bool = False,
) -> int | None:
    """Return the percentageOfNodesToScore for a setting, or None for the scheduler's own choice.

    `before` is what `samples_all_nodes` returned last. `asks_all`: a policy needs to see all nodes.
    """
    if wanted != "Auto":
        return int(wanted.removesuffix("%"))
    if asks_all:
        return 100
    if nodes is None:
        return None if before is False else 100
    return 100 if nodes <= (ALL_AGAIN_UP_TO if before is False else ALL_UP_TO) else None


def samples_all_nodes(config: Mapping[str, Any] | None) -> bool | None:
    """Return whether a scheduler with this configuration looks at all nodes; None if `Auto` has not decided yet."""
    if config is None:
        return None
    return {100: True, None: False}.get(config.get("percentageOfNodesToScore"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Facts about the cluster and the operator in it."""

    namespace: str
    """Namespace of the operator and of the schedulers that it manages."""
    url: str
    """URL at which schedulers call the operator, such as https://fairlead.fairlead-system.svc:8443."""
    ca_bundle: str
    """Authorities of its certificate, in PEM. A scheduler reads them once, when it starts."""
    server_versions: tuple[str, ...]
    """The `gitVersion` of each API server."""
    pod_groups: bool = False
    """Whether every API server that has answered lately serves Kubernetes' own groups."""
    nodes: int | None
    """Number of nodes; None while they are being listed: then it decides nothing."""
    asked_all: bool | None = None
    """Result of `samples_all_nodes` for the current configuration."""


_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-(alpha|beta|rc)\.(\d+))?(?=[-+.]|$)")
_STAGES = ("alpha", "beta", "rc", None)


def image_tag(git_versions: Iterable[str]) -> str:
    """Return the tag of the lowest version of the API servers. Raises ValueError.

    Suffixes of vendors are cut off. A build between two pre-releases counts as the earlier one, which has an image.
    """
    return "v" + min(map(_parsed, git_versions))[-1]


def minor_version(version: str) -> tuple[int, int] | None:
    """Return the major and the minor version; None if it cannot be read."""
    try:
        major, minor, *_ = _parsed(version)
    except ValueError:
        return None
    return major, minor


def _parsed(version: str) -> tuple[int, int, int, int, int, str]:
    found = _VERSION.match(version)
    if found is None or not any(map(int, found.group(1, 2))):
        raise ValueError(f"{version[:40]!r}, the version of the API server, cannot be read")
    major, minor, patch = map(int, found.group(1, 2, 3))
    stage, count = found[4], int(found[5] or 0)
    tag = f"{major}.{minor}.{patch}" + (f"-{stage}.{count}" if stage else "")
    return major, minor, patch, _STAGES.index(stage), count, tag

"""Which kube-scheduler goes with the cluster: it must not be newer than any API server that it talks to."""

import re
from collections.abc import Iterable

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
        raise ValueError(f"the API server calls its version {said[:40]!r}, which is none")
    major, minor, patch = map(int, found.group(1, 2, 3))
    stage, count = found[4], int(found[5] or 0)
    tag = f"{major}.{minor}.{patch}" + (f"-{stage}.{count}" if stage else "")
    return major, minor, patch, _STAGES.index(stage), count, tag

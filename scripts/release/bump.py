"""Sets the version in every place, and commits and tags it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from release.project import ROOT, ReleaseError, output_of, python_version, run, say


@dataclass(frozen=True, slots=True)
class Place:
    """A file in which a version stands."""

    file: str
    pattern: str
    """Regular expression of one line; its only group is what is replaced."""
    form: str
    """Text to write: `{semver}`, `{python}`, `{prerelease}` (true or false) or `{date}` among other text."""


_CHART = "charts/fairlead/Chart.yaml"
PLACES = (
    Place("operator/fairlead/__init__.py", r'^__version__ = "(.+)"$', "{python}"),
    Place(_CHART, r"^version: (.+)$", "{semver}"),
    Place(_CHART, r"^appVersion: (.+)$", "{semver}"),
    Place(_CHART, r'^  artifacthub.io/prerelease: "(.+)"$', "{prerelease}"),
    Place(_CHART, r"^      image: ghcr.io/fairlead-dev/fairlead:(.+)$", "{semver}"),
    Place("docs/guide/extender-in-one-pod.md", r"^ +image: ghcr.io/fairlead-dev/fairlead:(.+)$", "{semver}"),
    Place("docs/guide/install.md", r"^export REGISTRY=.* TAG=(\S+)$", "{semver}"),
    Place("docs/guide/write-a-strategy.md", r"^FROM ghcr.io/fairlead-dev/fairlead:(.+)$", "{semver}"),
)
_HEADING = Place("CHANGELOG.md", r"^## (\[Unreleased\])$", "[Unreleased]\n\n## [{semver}] - {date}")
"""The heading that a release gets; versions in development have none."""


def bump(version: str, checkout: Path = ROOT, *, date: str = "") -> list[str]:
    """Write the version to all places; return the files that changed."""
    date = date or datetime.now(UTC).strftime("%Y-%m-%d")
    words = {
        "semver": version,
        "python": python_version(version),
        "prerelease": str("-" in version).lower(),
        "date": date,
    }
    places = [*PLACES, *([] if "-dev." in version else [_HEADING])]
    for place in places:
        path = checkout / place.file
        text = path.read_text()
        found = [*re.finditer(place.pattern, text, re.MULTILINE)]
        if len(found) != 1:
            raise ReleaseError(f"{place.file} has {len(found)} lines like {place.pattern}, not 1")
        start, end = found[0].span(1)
        path.write_text(text[:start] + place.form.format(**words) + text[end:])
    return sorted({place.file for place in places})


def main(
    version: str,
    checkout: Path = ROOT,
    *,
    checks: Sequence[Sequence[str]] = (("make", "test"),),
    generate: Sequence[str] = ("make", "crds"),
) -> None:
    """Refuse a tree that is not clean or fails; else set the version, commit and tag."""
    if not version:
        raise ReleaseError("say which: make release VERSION=0.2.0")
    python_version(version)  # refuses what is no version
    tag = f"v{version}"
    git = ("git", "-C", str(checkout))
    if changed := output_of([*git, "status", "--porcelain"]):
        raise ReleaseError(f"the tree is not clean: commit or remove what `git status` names\n{changed}")
    if output_of([*git, "tag", "--list", tag]):
        raise ReleaseError(f"{tag} is there: a version is published once, so take the next one")
    for check in checks:
        run(check, where=checkout)
    bump(version, checkout)
    run(generate, where=checkout)
    run([*git, "add", "--update"])
    run([*git, "commit", "--quiet", "--signoff", "--message", f"release: {version}"])
    if "-dev." in version:
        say(f"the version is {version}; push the branch")
        return
    run([*git, "tag", "--annotate", "--message", f"Fairlead {version}", tag])
    say(f"tagged {tag}; `git push origin HEAD {tag}` publishes it, `git tag --delete {tag}` takes it back")

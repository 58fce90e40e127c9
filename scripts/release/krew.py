"""Writes the manifest by which krew installs the plugin of kubectl, and tries it."""

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from release.project import DIST, REPOSITORY, ROOT, ReleaseError, run, semver
from testbed import build
from testbed.versions import program

_NAME = "kubectl-fairlead"
_DESCRIPTION = """\
Fairlead changes where Kubernetes pods are placed by applying a policy instead of building a scheduler.
This plugin checks policies before they are applied, tests and simulates them without a cluster, and says
why a pod is pending. The operator is installed with Helm: see the homepage.
"""


def manifest(archives: Mapping[str, Path], version: str = semver()) -> str:
    """Return the manifest for the archives of a version, by platform such as `linux-amd64`."""
    platforms = [_platform(name, archive, version) for name, archive in sorted(archives.items())]
    spec = {
        "version": f"v{version}",
        "homepage": REPOSITORY,
        "shortDescription": "Check, test and explain policies for pod placement",
        "description": _DESCRIPTION,
        "platforms": platforms,
    }
    kind = {"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin"}
    return yaml.safe_dump(kind | {"metadata": {"name": "fairlead"}, "spec": spec}, sort_keys=False)


def _platform(name: str, archive: Path, version: str) -> Mapping[str, object]:
    system, _, architecture = name.partition("-")
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "selector": {"matchLabels": {"os": system, "arch": architecture}},
        "uri": f"{REPOSITORY}/releases/download/v{version}/{archive.name}",
        "sha256": digest,
        "files": [{"from": f"{_NAME}/*", "to": "."}],
        "bin": _NAME,
    }


def archives_in(folder: Path, version: str = semver()) -> dict[str, Path]:
    """Return the bundles of a version that lie in a folder, by platform."""
    form = re.compile(rf"{_NAME}-{re.escape(version)}-([a-z]+-[a-z0-9]+)\.tar\.gz")
    found = ((form.fullmatch(one.name), one) for one in sorted(folder.glob(f"{_NAME}-*.tar.gz")))
    return {match[1]: one for match, one in found if match}


def write(folder: Path = DIST, version: str = semver()) -> Path:
    """Write the manifest of all bundles of a version that lie in a folder."""
    archives = archives_in(folder, version)
    if not archives:
        raise ReleaseError(f"no bundle of {version} is in {folder}: make binary")
    target = folder / "fairlead.krew.yaml"
    target.write_text(manifest(archives, version))
    return target


def try_plugin(written: Path, archive: Path) -> None:
    """Install it as krew does, without its index, and run the tests of the examples through kubectl."""
    programs = build.build([program("krew"), program("kubectl")])
    with tempfile.TemporaryDirectory() as home:
        path = os.pathsep.join([f"{home}/bin", str(programs["kubectl"].parent), os.environ["PATH"]])
        environment = {**os.environ, "KREW_ROOT": home, "KREW_NO_UPGRADE_CHECK": "1", "PATH": path}
        options = [f"--manifest={written}", f"--archive={archive}"]
        run([programs["krew"], "install", *options], environment=environment)
        run([programs["kubectl"], "fairlead", "test", ROOT / "examples" / "tests"], environment=environment)

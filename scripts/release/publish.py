"""Pushes image and chart to a registry, be it one of this machine to try them with."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from release import chart, image, krew, registry
from release.project import DIST, ROOT, ReleaseError, run, say, semver, tool
from testbed import build, operator_image
from testbed.versions import program

PLATFORMS = ("amd64", "arm64")


@dataclass(frozen=True, slots=True)
class Published:
    """Image and chart in a registry."""

    image: str
    image_digest: str
    chart: str
    chart_digest: str

    def install_command(self) -> str:
        """Return the command that installs exactly this."""
        flags = " ".join(image.flags(image.Made(self.image, self.image_digest)))
        chart_ = f"{self.chart}@{self.chart_digest}"
        return f"helm install fairlead {chart_} --namespace fairlead-system --create-namespace {flags}"


def publish(archives: Mapping[str, Path], package: Path, where: str, *, plain_http: bool = False) -> Published:
    """Push an image built for each platform, and a packaged chart, below `where`, such as ghcr.io/fairlead-dev."""
    reference = f"{where}/fairlead:{semver()}"
    pushed = image.Made(reference, image.push_archives(archives, reference, plain_http=plain_http))
    return _add_chart(pushed, package, where, plain_http=plain_http)


def _add_chart(pushed: image.Made, package: Path, where: str, *, plain_http: bool = False) -> Published:
    digest = push_chart(package, where, plain_http=plain_http)
    return Published(pushed.reference, pushed.digest, f"oci://{where}/charts/fairlead", digest)


def push_chart(package: Path, where: str, *, plain_http: bool = False) -> str:
    """Push a packaged chart; return its digest."""
    command = [chart.helm(), "push", package, f"oci://{where}/charts", *(["--plain-http"] if plain_http else [])]
    pushed = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    found = re.search(r"Digest: (sha256:[0-9a-f]{64})", pushed.stdout + pushed.stderr)
    if pushed.returncode or not found:
        raise ReleaseError(f"the chart was not pushed: {pushed.stderr.strip()}")
    return found[1]


def main(where: str, *, platforms: Sequence[str] = (), engine: str = "") -> None:
    """Publish below a registry's path; REGISTRY_USER and REGISTRY_PASSWORD log in where they are set."""
    if not where:
        raise ReleaseError("say where to: make publish REGISTRY=ghcr.io/fairlead-dev")
    _log_in(where.partition("/")[0])
    made = image.make(engine=engine, platforms=platforms or PLATFORMS, push=f"{where}/fairlead")
    published = _add_chart(made, chart.package(), where)
    digests = {"image": published.image_digest, "chart": published.chart_digest}
    for name, place in {"image": "fairlead", "chart": "charts/fairlead"}.items():
        reference = f"{where}/{place}@{digests[name]}"
        (DIST / f"{name}-reference").write_text(f"{reference}\n")
        say(f"{name}: {reference}")
    if outputs := os.environ.get("GITHUB_OUTPUT"):  # for later steps of the workflow
        with Path(outputs).open("a") as file:
            file.writelines(f"{name}={digest}\n" for name, digest in digests.items())
    print(published.install_command())


def cosign() -> Path:
    """Return the program that signs: that of the machine, else one that is built on the first call."""
    found = shutil.which("cosign")
    return Path(found) if found else build.build([program("cosign")])["cosign"]


def sign(key: str = "", folder: Path = DIST) -> None:
    """Sign image and chart with a key; without one, with the identity of the workflow, in a public log."""
    references = sorted(folder.glob("*-reference"))
    if not references:
        raise ReleaseError("nothing was pushed from here: make publish REGISTRY=ghcr.io/fairlead-dev")
    with_key = [f"--key={key}", "--use-signing-config=false", "--tlog-upload=false"]
    for file in references:
        run([cosign(), "sign", "--yes", "--recursive", *(with_key if key else []), file.read_text().strip()])


def upload(to: str, folder: Path = DIST) -> None:
    """Publish the packages in dist/ on PyPI, or draft the release on GitHub with the bundles in dist/."""
    if to == "github":
        run(draft(semver(), folder, (ROOT / "CHANGELOG.md").read_text()))
    else:
        run([tool("uv"), "publish", "--trusted-publishing", "always", *packages_in(folder)])


def packages_in(folder: Path) -> list[Path]:
    """Return what PyPI gets of a folder, which bundles may lie in, too. Raises ReleaseError if that is nothing."""
    found = [*sorted(folder.glob("fairlead-*.whl")), *sorted(folder.glob("fairlead-*.tar.gz"))]
    if not found:
        raise ReleaseError(f"no packages are in {folder}: make dist")
    return found


def draft(version: str, folder: Path, changelog: str) -> list[str | Path]:
    """Return the command that drafts a release with the section of the changelog; a person publishes it."""
    manifest = krew.write(folder, version)
    found = re.search(rf"^## \[{re.escape(version)}\].*\n((?:(?!## ).*\n)*)", changelog, re.MULTILINE)
    if not found:
        raise ReleaseError(f"CHANGELOG.md has no section [{version}]")
    stage = ["--prerelease"] if "-" in version else []
    words = ["gh", "release", "create", f"v{version}", "--draft", "--verify-tag", *stage]
    files = [*krew.archives_in(folder, version).values(), manifest]
    return [*words, f"--title=Fairlead {version}", f"--notes={found[1].strip()}", *files]


def local(*, platforms: Sequence[str] = (), port: int = 5000) -> None:
    """Publish to a registry of this machine, which serves until it is interrupted."""
    labels = image.labels()
    archives = {one: operator_image.build(architecture=one, labels=labels).archive for one in platforms or PLATFORMS}
    with registry.serve(DIST / "registry", port=port) as address:
        published = publish(archives, chart.package(), f"{address}/fairlead-dev", plain_http=True)
        print(f"{published.install_command()} --plain-http", flush=True)
        say(f"the registry serves at {address} until you press Ctrl-C")
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


def _log_in(host: str) -> None:
    user, password = os.environ.get("REGISTRY_USER"), os.environ.get("REGISTRY_PASSWORD")
    if user and password:
        for command in ([registry.crane(), "auth", "login", host], [chart.helm(), "registry", "login", host]):
            words = [*map(str, command), "--username", user, "--password-stdin"]
            subprocess.run(words, input=password, text=True, check=True)

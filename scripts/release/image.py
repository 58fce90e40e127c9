"""Builds the image with what this machine has, pushes it where that is asked for, and says how the chart finds it."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from release import registry
from release.project import DIST, ROOT, ReleaseError, commit, commit_time, output_of, reproducible, run, say, semver
from testbed import operator_image

ENGINES = ("docker", "docker-classic", "podman", "buildah", "testbed")
_PROBES = {
    "docker": (("docker", "info"), ("docker", "buildx", "version")),
    "docker-classic": (("docker", "info"),),
    "podman": (("podman", "info"),),
    "buildah": (("buildah", "info"),),
}
"""Commands that succeed where an engine works; docker-classic is Docker without buildx."""
_INSPECTS = {
    "docker": ("image", "inspect"),
    "podman": ("image", "inspect"),
    "buildah": ("inspect", "--type=image"),
}
"""Commands that succeed where an engine has an image."""


@dataclass(frozen=True, slots=True)
class Made:
    """An image that was built."""

    reference: str
    digest: str = ""
    """Of its manifest, which is what a registry knows it by; empty as long as no registry has it."""
    archives: tuple[Path, ...] = ()
    """Files that the testbed wrote: of one platform what `docker load` reads, of several an OCI archive."""


def labels(checkout: Path = ROOT) -> dict[str, str]:
    """Return the Dockerfile's last arguments, which say where the image comes from."""
    created = datetime.fromtimestamp(commit_time(checkout), UTC)
    return {"VERSION": semver(), "REVISION": commit(checkout), "CREATED": created.strftime("%Y-%m-%dT%H:%M:%SZ")}


def choose(wanted: str = "", succeeds: Callable[[Sequence[str]], bool] | None = None) -> str:
    """Return the engine: the one that is wanted, else the first that works here and has the base or can pull it."""
    succeeds = succeeds or _succeeds
    if wanted:
        if wanted not in ENGINES:
            raise ReleaseError(f"ENGINE={wanted} is none of {', '.join(ENGINES)}")
        return wanted
    for engine, probes in _PROBES.items():
        program = _program(engine)
        has_base, pulls_base = ((program, *words, base()) for words in (_INSPECTS[program], ("pull", "--quiet")))
        if all(map(succeeds, probes)) and (succeeds(has_base) or succeeds(pulls_base)):
            return engine
    say("no container engine here has the base or can pull it: the testbed builds the image, on one of Debian packages")
    return "testbed"


def base(dockerfile: Path = ROOT / "Dockerfile") -> str:
    """Return what the image stands on, as the Dockerfile has it."""
    [line] = [one for one in dockerfile.read_text().splitlines() if one.startswith("ARG RUNTIME=")]
    return line.partition("=")[2]


def commands(engine: str, reference: str, platforms: Sequence[str], *, push: bool, told: Path) -> list[list[str]]:
    """Return what an engine is called with; it writes the digest, or a file that holds it, to `told`."""
    arguments = [f"--build-arg={name}={value}" for name, value in labels().items()]
    several = ",".join(f"linux/{one}" for one in platforms)
    if engine == "docker":
        kind = f"type=image,name={reference},push=true,rewrite-timestamp=true" if push else "type=docker"
        output = [f"--output={kind}", f"--metadata-file={told}", "--provenance=false"]
        arguments.append(f"--build-arg=SOURCE_DATE_EPOCH={commit_time()}")
        return [["docker", "buildx", "build", f"--platform={several}", f"--tag={reference}", *arguments, *output, "."]]
    own = operator_image.own_architecture()
    arguments.append(f"--build-arg=BUILDPLATFORM=linux/{own}")
    if engine == "docker-classic":
        if [*platforms] != [own]:
            raise ReleaseError(f"Docker without buildx builds for {own} only: install buildx, or set ENGINE=testbed")
        pushed = [["docker", "push", reference]] if push else []
        return [["docker", "build", f"--tag={reference}", *arguments, "."], *pushed]
    arguments.append(f"--timestamp={commit_time()}")
    if len(platforms) == 1:
        pushed = [[engine, "push", f"--digestfile={told}", reference]] if push else []
        return [[engine, "build", f"--platform={several}", f"--tag={reference}", *arguments, "."], *pushed]
    pushed = [[engine, "manifest", "push", "--all", f"--digestfile={told}", reference, f"docker://{reference}"]]
    return [[engine, "build", f"--platform={several}", f"--manifest={reference}", *arguments, "."], *pushed]


def flags(made: Made) -> list[str]:
    """Return what `helm install` needs in order to find the image."""
    name, _, tag = made.reference.rpartition(":")
    host, slash, repository = name.partition("/")
    if not slash or not ({".", ":"} & {*host} or host == "localhost"):
        host, repository = "", name
    settings = {"registry": host, "repository": repository, "tag": tag}
    if made.digest and host:
        settings["digest"] = made.digest
    return [f"--set image.{key}={value}" for key, value in settings.items()]


def make(*, engine: str = "", platforms: Sequence[str] = (), push: str = "", tag: str = "") -> Made:
    """Build, and push to `push` if it is set: a registry with a path, such as registry.example/team/fairlead."""
    platforms = platforms or [operator_image.own_architecture()]
    if unknown := [one for one in platforms if one not in operator_image.MACHINES]:
        known = ", ".join(operator_image.MACHINES)
        raise ReleaseError(f"no image can be built for {', '.join(unknown)}: PLATFORMS may hold {known}")
    reference = f"{push.removeprefix('docker://').rstrip('/') if push else 'fairlead'}:{tag or semver()}"
    engine = choose(engine)
    if len(platforms) > 1 and not push and engine != "testbed":
        raise ReleaseError("an image of several platforms is in a registry: say which with PUSH=REGISTRY/PATH")
    if engine == "docker" and shutil.which("docker") and not _succeeds(("docker", "buildx", "version")):
        raise ReleaseError("this Docker has no buildx: install it, or set ENGINE=docker-classic, which needs none")
    say(f"building {reference} for {' and '.join(platforms)} with {engine}")
    if engine == "testbed":
        archives = {one: operator_image.build(architecture=one, labels=labels(), name=reference) for one in platforms}
        files = {architecture: image.archive for architecture, image in archives.items()}
        if push:
            return Made(reference, push_archives(files, reference), (*files.values(),))
        if len(files) > 1:
            target = DIST / f"fairlead-{tag or semver()}.oci.tar"
            return Made(reference, _save_together(files, target), (target,))
        return Made(reference, "", (*files.values(),))
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "told")
        for words in commands(engine, reference, platforms, push=bool(push), told=told):
            run(words, environment=reproducible())
        return Made(reference, _digest(told, reference) if push else "")


def push_archives(archives: Mapping[str, Path], reference: str, *, plain_http: bool = False) -> str:
    """Push what was built for each platform, as one image; return the digest of its manifest."""
    crane = registry.crane()
    options = ["--insecure"] if plain_http else []
    pushed = []
    for architecture, archive in archives.items():
        one = reference if len(archives) == 1 else f"{reference}-{architecture}"
        run([crane, "push", *options, archive, one])
        pushed.append(f"{one.rpartition(':')[0]}@{output_of([crane, 'digest', *options, one])}")
    if len(pushed) > 1:
        manifests = [word for one in pushed for word in ("--manifest", one)]
        run([crane, "index", "append", *options, "--docker-empty-base=false", "--tag", reference, *manifests])
    return output_of([crane, "digest", *options, reference])


def save(reference: str, target: Path, *, plain_http: bool = False) -> str:
    """Write what a registry has, with all platforms, to one OCI archive; return the digest of its manifest."""
    crane = registry.crane()
    options = ["--insecure"] if plain_http else []
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        run([crane, "pull", *options, "--format=oci", reference, folder])
        names = sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*"))
        run(["tar", "--create", "--file", target, "--directory", folder, *_UNTIMED, "--no-recursion", *names])
    return output_of([crane, "digest", *options, reference])


def _save_together(archives: Mapping[str, Path], target: Path) -> str:
    """Write what was built for each platform to one OCI archive, which `skopeo copy` and `ctr images import` read."""
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, registry.serve(Path(folder)) as address:
        reference = f"{address}/fairlead:{semver()}"
        push_archives(archives, reference, plain_http=True)
        return save(reference, target, plain_http=True)


_UNTIMED = ("--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX")


def _digest(told: Path, reference: str) -> str:
    if not told.exists():  # Docker without buildx knows it by the repository that it pushed to
        named = output_of(["docker", "inspect", '--format={{join .RepoDigests "\\n"}}', reference])
        wanted = f"{reference.rpartition(':')[0]}@"
        return next((one.removeprefix(wanted) for one in named.splitlines() if one.startswith(wanted)), "")
    text = told.read_text()
    return str(json.loads(text).get("containerimage.digest", "")) if text.startswith("{") else text.strip()


def _program(engine: str) -> str:
    return engine.partition("-")[0]


def _succeeds(words: Sequence[str]) -> bool:
    return shutil.which(words[0]) is not None and not subprocess.run(words, capture_output=True, check=False).returncode


def main(*, engine: str = "", platforms: Sequence[str] = (), push: str = "", tag: str = "") -> None:
    """Build, and print where the image is."""
    made = make(engine=engine, platforms=platforms, push=push, tag=tag)
    print(f"reference: {made.reference}")
    print(f"digest:    {made.digest or 'a registry says it: make image PUSH=REGISTRY/PATH'}")
    for archive in made.archives:
        print(
            f"archive:   {archive} ({archive.stat().st_size:,} bytes; `docker load --input`, `kind load image-archive`)"
        )
    print(f"chart:     {' '.join(flags(made))}")
    if push:
        DIST.mkdir(exist_ok=True)
        (DIST / "image-reference").write_text(f"{made.reference.rpartition(':')[0]}@{made.digest}\n")

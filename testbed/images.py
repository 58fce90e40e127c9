"""Images of one static program each, made without any image builder."""

import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import ClusterError

_ARCHITECTURES = {0x3E: "amd64", 0xB7: "arm64"}


def archive(
    tag: str, program: Path, *, entrypoint: Sequence[str] = (), command: Sequence[str] = (), folder: str = ""
) -> bytes:
    """A docker archive of an image whose only file is the program; the same program gives the same bytes.

    It lies in the root, or in a folder such as `usr/local/bin`, where it is found by its name.
    """
    file = f"{folder}/{program.name}".removeprefix("/")
    layer = _tar({file: program.read_bytes()}, mode=0o755)
    config = _json(
        {
            "architecture": architecture(program),
            "os": "linux",
            "config": {
                "Entrypoint": [*entrypoint] or [f"/{file}"],
                "Cmd": [*command] or None,
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            "history": [{"created_by": "fairlead testbed"}],
        }
    )
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = _json([{"Config": name, "RepoTags": [tag], "Layers": ["layer.tar"]}])
    return _tar({"manifest.json": manifest, name: config, "layer.tar": layer}, mode=0o644)


def of_kubernetes(tag: str, program: Path) -> bytes:
    """As the project publishes its own: the program lies where a `command` finds it, and only that runs it."""
    return archive(tag, program, folder="usr/local/bin", entrypoint=["/go-runner"])


def architecture(program: Path) -> str:
    """The architecture in the program's ELF header."""
    with program.open("rb") as file:
        header = file.read(20)
    known = _ARCHITECTURES.get(int.from_bytes(header[18:], "little")) if header.startswith(b"\x7fELF") else None
    if known is None:
        raise ClusterError(f"{program} is no program for Linux on {' or '.join(_ARCHITECTURES.values())}")
    return known


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _tar(files: dict[str, bytes], *, mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()

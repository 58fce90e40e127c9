"""Archives of several images, as `docker save` writes them and kind reads them."""

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed import images


@dataclass(frozen=True, slots=True)
class Image:
    """An image of one program, under a name."""

    tag: str
    program: Path
    file: str
    """Path of the program in the image."""
    entrypoint: Sequence[str] = ()
    below: Path | None = None
    """Archive of the files that the program needs beside it."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)


def write(target: Path, made: Sequence[Image]) -> None:
    """Write an archive of these images."""
    with tarfile.open(target, "w") as tar, tempfile.TemporaryDirectory(dir=target.parent) as folder:
        # kind finds the names of all images in this file if it comes first, and those of one image in the manifest
        _add(tar, "repositories", _repositories([image.tag for image in made]))
        manifest = []
        for image in made:
            layers = [_add_layer(tar, layer) for layer in _layers(image, Path(folder))]
            config = _config(image, layers)
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            if name not in tar.getnames():
                _add(tar, name, config)
            files = [f"{layer}.tar" for layer in layers]
            manifest.append({"Config": name, "RepoTags": [image.tag], "Layers": files})
        _add(tar, "manifest.json", json.dumps(manifest).encode())


def _layers(image: Image, folder: Path) -> list[Path]:
    own = folder / "own.tar"
    with tarfile.open(own, "w") as tar:
        _add(tar, image.file, image.program.read_bytes(), mode=0o755)
        for name, text in image.scripts.items():
            _add(tar, name, text.encode(), mode=0o755)
        for name, target in image.links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return [*([image.below] if image.below else []), own]


def _add_layer(tar: tarfile.TarFile, layer: Path) -> str:
    """Add a layer unless it is there; its digest."""
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if f"{digest}.tar" not in tar.getnames():
        tar.add(layer, f"{digest}.tar")
    return digest


def _config(image: Image, layers: Sequence[str]) -> bytes:
    return json.dumps(
        {
            "architecture": images.architecture(image.program),
            "os": "linux",
            "config": {"Entrypoint": [*image.entrypoint] or [f"/{image.file}"], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}" for layer in layers]},
        }
    ).encode()


def _repositories(tags: Sequence[str]) -> bytes:
    document: dict[str, dict[str, str]] = {}
    for tag in tags:
        repository, _, version = tag.rpartition(":")
        document.setdefault(repository, {})[version] = ""
    return json.dumps(document).encode()


def _add(tar: tarfile.TarFile, name: str, data: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))

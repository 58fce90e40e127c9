"""Writes what an image holds, as CycloneDX: packages of Python and of the system, read from the image itself."""

import email.parser
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cyclonedx.model import ExternalReference, ExternalReferenceType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from release.project import DIST, REPOSITORY, ReleaseError, say, semver
from testbed import operator_image

if TYPE_CHECKING:
    from email.message import Message

_METADATA = re.compile(r"(?:.*/)?site-packages/[^/]+\.dist-info/METADATA")
_SYSTEM = "var/lib/dpkg/status"
_SYSTEM_PARTS = re.compile(r"var/lib/dpkg/status\.d/[^/]+")  # of images without a package manager


def files_of(archive: Path) -> dict[str, bytes]:
    """Return the files of an image that say what it holds, as they are once all layers lie on each other."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as image:
        [manifest] = json.loads(_read(image, "manifest.json"))
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=io.BytesIO(_read(image, layer))) as files:
                for member in files:
                    name = member.name.removeprefix("./")
                    folder, _, last = name.rpartition("/")
                    if last.startswith(".wh."):
                        gone = f"{folder}/{last.removeprefix('.wh.')}".removeprefix("/")
                        found = {
                            one: text for one, text in found.items() if one != gone and not one.startswith(f"{gone}/")
                        }
                    elif member.isfile() and (
                        _METADATA.fullmatch(name) or _SYSTEM_PARTS.fullmatch(name) or name == _SYSTEM
                    ):
                        found[name] = _read(files, member.name)
    return found


def components(files: Mapping[str, bytes]) -> Iterator[Component]:
    """Return the packages that these files name."""
    for name, content in sorted(files.items()):
        if _METADATA.fullmatch(name):
            yield _python(email.parser.Parser().parsestr(content.decode(errors="replace"), headersonly=True))
        else:
            for paragraph in re.split(r"\n\n+", content.decode(errors="replace").strip()):
                fields = email.parser.Parser().parsestr(paragraph, headersonly=True)
                if fields["Package"] and (fields["Status"] or "install ok").startswith("install ok"):
                    yield _debian(fields["Package"], fields["Version"], fields["Architecture"])


def bom(files: Mapping[str, bytes], *, digest: str = "") -> Bom:
    """Return the document about an image."""
    parts = [*components(files)]
    subject = Component(
        name="fairlead",
        version=semver(),
        type=ComponentType.CONTAINER,
        bom_ref="image",
        purl=PackageURL("oci", name="fairlead", version=digest or None),
        external_references=[ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(REPOSITORY))],
    )
    made = Bom(components=parts)
    made.metadata.component = subject
    made.register_dependency(subject, parts)
    return made


def document(made: Bom) -> str:
    """Return it as text, which is valid CycloneDX 1.6."""
    text: str = JsonV1Dot6(made).output_as_string(indent=2)
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ReleaseError(f"what was written is no CycloneDX: {wrong}")
    return text


def _python(metadata: "Message[str, str]") -> Component:
    name, version = metadata["Name"], metadata["Version"]
    licence = metadata.get("License-Expression") or metadata.get("License") or ""
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=f"python:{name.lower()}",
        purl=PackageURL("pypi", name=name.lower().replace("_", "-"), version=version),
        licenses=[DisjunctiveLicense(name=licence)] if licence and "\n" not in licence else (),
    )


def _debian(name: str, version: str, architecture: str) -> Component:
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=f"system:{name}:{architecture}",
        purl=PackageURL("deb", "debian", name, version, {"arch": architecture}),
        properties=[Property(name="fairlead:layer", value="base")],
    )


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise ReleaseError(f"{archive.name!r} holds no {name}")
    return file.read()


def write(archive: Path, target: Path) -> Bom:
    """Write the document about an image that `docker save` wrote."""
    made = bom(files_of(archive))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(document(made))
    return made


def main(archive: str = "") -> None:
    """Write the document about an archive, else about the image that the testbed builds of this checkout."""
    of = Path(archive) if archive else operator_image.build().archive
    target = DIST / f"fairlead-{semver()}.cdx.json"
    made = write(of, target)
    say(f"{target.relative_to(DIST.parent)}: {len(made.components)} components")

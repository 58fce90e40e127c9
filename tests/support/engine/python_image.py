"""The image that the operator's Dockerfile begins with, and the wheels that it would fetch: both made here."""

import re
import tempfile
from pathlib import Path

from support.engine.docker_engine import DockerEngine
from testbed import cache, operator_image, rootfs
from testbed.operator_image import CHECKOUT

_DOCKERFILE = """FROM scratch
ADD {base} /
COPY wheels /wheelhouse
RUN printf '[global]\\nno-index = true\\nfind-links = /wheelhouse\\n' > /etc/pip.conf
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""


def ensure(engine: DockerEngine) -> str:
    """Have it in the engine, built unless it is there; its tag."""
    log = engine.folder / "logs" / "python-image.log"
    with cache.locked("image", doing="building an image"):  # which begins with the same base and wheels
        base = rootfs.build(cache.root() / "images", log)
        architecture = operator_image.own_architecture()
        wheels = operator_image.wheels(CHECKOUT, rootfs.python_of(base), base.parent, log, architecture)
    tag = f"fairlead.dev/testbed/python:{base.stem}-{wheels.name}"
    if not engine.id_of(tag):
        with tempfile.TemporaryDirectory(dir=base.parent) as folder:  # where there can be links to them
            Path(folder, base.name).hardlink_to(base)
            Path(folder, "wheels").mkdir()
            for wheel in wheels.iterdir():
                Path(folder, "wheels", wheel.name).hardlink_to(wheel)
            Path(folder, "Dockerfile").write_text(_DOCKERFILE.format(base=base.name))
            engine.must("docker", "build", f"--tag={tag}", folder)
    return tag


def published(dockerfile: str) -> list[str]:
    """The images that a Dockerfile begins with unless it is told otherwise."""
    return sorted({*re.findall(r"^ARG \w+=(\S+/\S+[:@]\S+)$", dockerfile, re.MULTILINE)})

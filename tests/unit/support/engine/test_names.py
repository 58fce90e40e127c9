"""What published images are called, and where kind and the Dockerfile name them."""

from pathlib import Path

import pytest

from support.engine import node_image, python_image
from support.engine.docker_engine import spellings
from testbed import go_modules
from testbed.operator_image import CHECKOUT
from testbed.versions import CNI_PLUGINS, CONTAINERD, CRICTL, MODULES

_SPELLINGS = {
    "docker.io/library/python:3.13-slim": ["python:3.13-slim"],
    "kindest/node:v1.37.0@sha256:a1": ["kindest/node:v1.37.0", "kindest/node@sha256:a1"],
    "docker.io/library/python@sha256:a1": ["python@sha256:a1"],
}


@pytest.mark.parametrize(("name", "wanted"), _SPELLINGS.items(), ids=_SPELLINGS)
def test_a_published_name_is_written_as_docker_writes_it(name: str, wanted: list[str]) -> None:
    assert spellings(name) == wanted


@pytest.fixture(scope="module")
def kind() -> Path:
    return go_modules.download("sigs.k8s.io/kind", of=MODULES / "tools")


@pytest.fixture(scope="module")
def dockerfile(kind: Path) -> str:
    return (kind / "images" / "base" / "Dockerfile").read_text()


def test_the_programs_of_a_node_have_the_versions_of_kinds_base_image(dockerfile: str) -> None:
    for name, version in {"CONTAINERD": CONTAINERD, "CNI_PLUGINS": CNI_PLUGINS, "CRICTL": CRICTL}.items():
        assert f'ARG {name}_VERSION="v{version}"' in dockerfile


def test_the_packages_are_those_of_kinds_dockerfile(dockerfile: str) -> None:
    packages = node_image.packages_of(dockerfile)
    assert {"systemd", "iptables", "procps"} <= {*packages}
    assert all(package.replace("-", "").isalnum() for package in packages)


def test_the_base_is_built_by_the_first_stage_of_kinds_dockerfile(dockerfile: str) -> None:
    built = node_image.dockerfile_of(dockerfile)
    assert built.count("\nFROM ") == 1
    assert "--chmod" not in built
    assert "systemctl enable kubelet.service" in built
    assert "> /etc/containerd/cri-base.json" in built


def test_kind_pulls_images_for_network_storage_and_sandboxes(kind: Path) -> None:
    pulled = node_image.pulled(kind)
    repositories = [tag.rpartition(":")[0].rpartition("/")[2] for tag in pulled]
    assert repositories == ["kindnetd", "local-path-provisioner", "local-path-helper", "pause"]


def test_the_dockerfile_of_the_operator_begins_with_published_images() -> None:
    [published] = python_image.published((CHECKOUT / "Dockerfile").read_text())
    assert published.startswith("docker.io/library/python:3.13-slim@sha256:")

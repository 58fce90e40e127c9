"""pytest fixtures: the images that pods of a cluster with a real node run, loaded once a run; each is its tag."""

from pathlib import Path

import pytest

from testbed import build, images, operator_image, sandbox
from testbed.fixtures import Cluster
from testbed.providers import Existing, Kind
from testbed.versions import program


@pytest.fixture(scope="session")
def built_image() -> operator_image.Image:
    """The operator's, as this checkout has it."""
    if why := sandbox.obstacle():
        pytest.skip(f"no image can be built here: {why}")
    return operator_image.build()


@pytest.fixture(scope="session")
def operator_image_tag(cluster: Cluster, built_image: operator_image.Image) -> str:
    """The operator's."""
    if isinstance(cluster.provider, Existing):
        pytest.skip("images cannot be brought to the nodes of a cluster that the testbed did not make")
    cluster.provider.load(built_image.archive)
    return built_image.tag


@pytest.fixture(scope="session")
def scheduler_image_tag(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The scheduler's, named as Kubernetes publishes it."""
    tag = f"registry.k8s.io/kube-scheduler:v{cluster.kubernetes}"
    if not isinstance(cluster.provider, Existing | Kind):  # there, its own nodes have it
        made = build.build([program("kube-scheduler", cluster.kubernetes)])["kube-scheduler"]
        archive = Path(tmp_path_factory.mktemp("image"), "scheduler.tar")
        archive.write_bytes(images.of_kubernetes(tag, made))
        cluster.provider.load(archive)
        archive.unlink()
    return tag

"""What the guide tells people to type in a cluster is typed in one. The page about installing installs it for all."""

from collections.abc import Iterator

import pytest

from support.chart.chart import NAMESPACE
from support.chart.release import Release, refused
from support.docs.pages import CHECKOUT, Page, Place, pages
from testbed.api import wait_for
from testbed.fixtures import Cluster

_INSTALL = Page(CHECKOUT / "docs" / "guide" / "install.md")
_PAGES = [one for one in pages() if one.needs_a_cluster and one.has_commands() and one.path != _INSTALL.path]


def place(cluster: Cluster, tag: str, factory: pytest.TempPathFactory) -> Place:
    repository, _, version = tag.rpartition(":")
    registry, _, path = repository.partition("/")
    own = {"KUBECONFIG": str(cluster.kubeconfig), "REGISTRY": registry, "REPOSITORY": path, "TAG": version}
    return Place(factory.mktemp("reader"), own, cluster.provider.programs())


@pytest.fixture(scope="module")
def installed(
    cluster: Cluster, operator_image_tag: str, scheduler_image_tag: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """By the page about it; the image's tag."""
    namespace = f"/api/v1/namespaces/{NAMESPACE}"
    wait_for("what others have installed to be gone", lambda: not cluster.api.exists(namespace))
    release = Release(cluster, operator_image_tag, [])
    try:
        place(cluster, operator_image_tag, tmp_path_factory).follow(_INSTALL)
        yield operator_image_tag
    finally:
        refused(release.uninstall)
        refused(release.delete_crd)
        cluster.api.delete(namespace)


def test_installing_is_as_its_page_says(installed: str) -> None:
    assert installed


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_what_a_page_says_to_type_does_what_it_says(
    page: Page, installed: str, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place(cluster, installed, tmp_path_factory).follow(page)

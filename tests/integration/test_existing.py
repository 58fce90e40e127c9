from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed import cache, process
from testbed.errors import ClusterError
from testbed.fixtures import Cluster
from testbed.kwok import LABEL
from testbed.layout import folder_of, is_free
from testbed.providers import Existing, Kind, choose

_OURS, _THEIRS = "existing-kwok", "existing-theirs"


@pytest.fixture
def existing(control_plane: Cluster, this_run: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Existing]:
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    provider = Existing(f"test-existing-{this_run}")
    provider.down()
    yield provider
    provider.down()


def test_up_keeps_a_copy_of_what_reaches_the_cluster(existing: Existing, control_plane: Cluster) -> None:
    existing.up()
    copy = existing.kubeconfig()
    assert copy != control_plane.kubeconfig
    assert copy.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(copy.read_text()) == yaml.safe_load(control_plane.kubeconfig.read_text())
    assert isinstance(choose(existing.cluster), Existing)
    existing.up()  # and once more changes nothing


def test_down_removes_our_nodes_and_processes_and_nobody_elses(existing: Existing, control_plane: Cluster) -> None:
    name, value = LABEL
    existing.up()
    for node, labels in ((_OURS, {name: value}), (_THEIRS, {})):
        control_plane.api.create("/api/v1/nodes", {"metadata": {"name": node, "labels": labels}})
    process.start(folder_of(existing.cluster), process.Component("sleeper", ["sleep", "600"]))
    assert [(part.name, part.state, part.detail) for part in existing.status()[1:3]] == [
        (_THEIRS, "unready", "see `kubectl describe node`"),
        ("kwok nodes", "unready", "0 of 1 ready"),
    ]
    try:
        existing.down()
        assert not control_plane.api.exists(f"/api/v1/nodes/{_OURS}")
        assert control_plane.api.exists(f"/api/v1/nodes/{_THEIRS}")
        assert not process.all_of(folder_of(existing.cluster))
        assert not folder_of(existing.cluster).exists()
        assert existing.status() == []
    finally:
        control_plane.api.delete(f"/api/v1/nodes/{_THEIRS}")
    assert control_plane.api.text("/readyz") == "ok"


def test_a_server_of_another_version_is_refused_by_name(existing: Existing, control_plane: Cluster) -> None:
    with pytest.raises(ClusterError, match=rf"runs Kubernetes v{control_plane.kubernetes}, not v1\.2\.3"):
        Existing(existing.cluster, kubernetes="1.2.3").up()
    assert not folder_of(existing.cluster).exists()
    Existing(existing.cluster, kubernetes=control_plane.kubernetes).up()


def test_a_cluster_without_real_nodes_is_refused_where_one_is_asked_for(existing: Existing) -> None:
    with pytest.raises(ClusterError, match="has no real nodes"):
        Existing(existing.cluster, node=True).up()


def test_another_provider_is_refused_on_the_same_name(existing: Existing) -> None:
    existing.up()
    with pytest.raises(ClusterError, match=f"{existing.cluster} was raised by existing, not kind"):
        Kind(existing.cluster).down()


def test_a_kubeconfig_that_now_names_another_cluster_is_refused(
    existing: Existing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    existing.up()
    monkeypatch.setenv("KUBECONFIG", str(_elsewhere(existing.kubeconfig(), tmp_path)))
    with pytest.raises(ClusterError, match=r"now names https://127\.0\.0\.1:"):
        existing.up()


def test_a_cluster_that_does_not_answer_is_named(
    existing: Existing, control_plane: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _elsewhere(control_plane.kubeconfig, tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(ClusterError) as raised:
        existing.up()
    assert "https://127.0.0.1:" in raised.value.what
    assert f"(context testbed of {file}) does not answer" in raised.value.what
    assert not folder_of(existing.cluster).exists()


def test_images_and_a_missing_cluster_are_explained(existing: Existing, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="push the image to a registry"):
        existing.load(tmp_path / "image.tar")
    with pytest.raises(ClusterError, match="there is no cluster"):
        existing.kubeconfig()
    assert cache.clusters().is_dir()


def _elsewhere(kubeconfig: Path, folder: Path) -> Path:
    """The same kubeconfig, with a server that nobody is."""
    document = yaml.safe_load(kubeconfig.read_text())
    port = next(port for port in range(28900, 29000) if is_free(port))
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    path = folder / "elsewhere"
    path.write_text(yaml.safe_dump(document))
    return path

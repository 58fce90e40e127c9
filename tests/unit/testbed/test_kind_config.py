import re
from typing import Any

import pytest
import yaml

from testbed import go_modules
from testbed.errors import ClusterError
from testbed.providers import kind_config
from testbed.versions import KIND_NODES, KUBERNETES, MODULES


def test_the_node_carries_the_label_of_real_nodes() -> None:
    config = kind_config.cluster()
    assert (config["kind"], config["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    node = {"role": "control-plane", "image": KIND_NODES["1.37"], "labels": {"fairlead.dev/testbed": "real"}}
    assert config["nodes"] == [node]


_OF_KIND = [version for version in KUBERNETES if kind_config.minor(version) in KIND_NODES]


@pytest.mark.parametrize("version", _OF_KIND)
def test_the_image_is_that_of_the_minor_version_asked_for_by_digest(version: str) -> None:
    image = kind_config.cluster(version)["nodes"][0]["image"]
    assert re.fullmatch(r"kindest/node:v[\d.]+@sha256:[\da-f]{64}", image)
    assert kind_config.minor(kind_config.version_of(image) or "") == kind_config.minor(version)


@pytest.mark.parametrize("version", sorted({*KUBERNETES} - {*_OF_KIND}))
def test_a_version_of_which_there_is_no_image_is_refused_with_those_of_which_there_is(version: str) -> None:
    with pytest.raises(ClusterError, match=f"has no node image of Kubernetes {kind_config.minor(version)}") as refused:
        kind_config.cluster(version)
    assert ", ".join(KIND_NODES) in str(refused.value)


def test_the_image_of_the_newest_version_is_the_one_that_kind_itself_would_take() -> None:
    constant = go_modules.download("sigs.k8s.io/kind", of=MODULES / "tools") / "pkg/apis/config/defaults/image.go"
    assert f'const Image = "{KIND_NODES[kind_config.minor(KUBERNETES[0])]}"' in constant.read_text()


_IMAGES = {"kindest/node:v1.37.0@sha256:a1ed": "1.37.0", "kindest/node:latest": None, "sha256:a1ed56": None, "": None}


@pytest.mark.parametrize(("image", "wanted"), _IMAGES.items(), ids=_IMAGES)
def test_the_version_is_read_from_the_name_of_the_image(image: str, wanted: str | None) -> None:
    assert kind_config.version_of(image) == wanted


def _arguments(part: dict[str, Any]) -> dict[str, str]:
    given = part["extraArgs"]
    return given if isinstance(given, dict) else {one["name"]: one["value"] for one in given}


def test_both_versions_of_kubeadms_configuration_say_the_same() -> None:
    old, new = map(yaml.safe_load, kind_config.cluster()["kubeadmConfigPatches"])
    assert (old["apiVersion"], new["apiVersion"]) == ("kubeadm.k8s.io/v1beta3", "kubeadm.k8s.io/v1beta4")
    assert isinstance(old["apiServer"]["extraArgs"], dict)
    assert isinstance(new["apiServer"]["extraArgs"], list)
    for part in ("apiServer", "controllerManager", "scheduler"):
        assert _arguments(old[part]) == _arguments(new[part])
    assert _arguments(old["etcd"]["local"]) == _arguments(new["etcd"]["local"])


def test_thousands_of_nodes_are_handled_fast() -> None:
    patch = yaml.safe_load(kind_config.cluster()["kubeadmConfigPatches"][1])
    assert _arguments(patch["controllerManager"])["kube-api-qps"] == "2000"
    assert _arguments(patch["controllerManager"])["enable-hostpath-provisioner"] == "true"
    assert _arguments(patch["apiServer"])["max-requests-inflight"] == "3000"
    assert _arguments(patch["etcd"]["local"])["unsafe-no-fsync"] == "true"

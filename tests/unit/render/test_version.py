from collections.abc import Mapping

import pytest

from fairlead.api.errors import InvalidObjectError
from fairlead.render.cluster_facts import image_tag
from support.render.schedulers import facts, named, planned

TAGS: Mapping[tuple[str, ...], str] = {
    ("v1.37.1",): "v1.37.1",
    ("1.37.1",): "v1.37.1",
    ("v1.33.5-eks-1234abc",): "v1.33.5",
    ("v1.36.3-gke.100",): "v1.36.3",
    ("v1.36.3-gke.1234000+deadbeef",): "v1.36.3",
    ("v1.35.4+k3s1",): "v1.35.4",
    ("v1.35.4+rke2r1",): "v1.35.4",
    ("v1.34.10-aliyun.1",): "v1.34.10",
    ("v1.34.2-dirty",): "v1.34.2",
    ("v1.33.1-tke.2",): "v1.33.1",
    ("v1.38.0-rc.0",): "v1.38.0-rc.0",
    ("v1.38.0-beta.2+k3s1",): "v1.38.0-beta.2",
    ("v1.38.0-alpha.1.123+0a1b2c3d",): "v1.38.0-alpha.1",
    ("v1.38.0-rc.1-eks-1",): "v1.38.0-rc.1",
    ("v1.37.1", "v1.36.3"): "v1.36.3",
    ("v1.9.9", "v1.10.0"): "v1.9.9",
    ("v1.37.10", "v1.37.9-eks-1"): "v1.37.9",
    ("v1.38.0", "v1.38.0-rc.1"): "v1.38.0-rc.1",
    ("v1.38.0-rc.1", "v1.38.0-beta.9"): "v1.38.0-beta.9",
    ("v1.38.0-alpha.10", "v1.38.0-alpha.9"): "v1.38.0-alpha.9",
}


@pytest.mark.parametrize("versions", TAGS)
def test_the_image_is_that_of_the_oldest_api_server(versions: tuple[str, ...]) -> None:
    assert image_tag(versions) == TAGS[versions]
    assert image_tag(reversed(versions)) == TAGS[versions]


@pytest.mark.parametrize("version", ["", "v1.37", "v1.37.x", "v1.37.1x", "v0.0.0-master+$Format:%H$", "latest"])
def test_what_is_no_version_is_refused_with_the_setting_that_helps(version: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        planned(cluster=facts(server_versions=("v1.37.1", version)))
    assert str(refused.value).startswith(
        f"schedulers.fairlead.image.tag: {version[:40]!r}, the version of the API server, cannot be read"
    )
    assert str(refused.value).endswith("; set a tag")
    assert _image(image={"tag": "v1.37.1"}, versions=(version,)) == "registry.k8s.io/kube-scheduler:v1.37.1"


def test_a_digest_wins_over_a_tag_and_a_tag_over_the_version() -> None:
    digest = f"sha256:{'a' * 64}"
    assert _image() == "registry.k8s.io/kube-scheduler:v1.37.1"
    assert _image(image={"repository": "mirror.example/k"}) == "mirror.example/k:v1.37.1"
    assert _image(image={"tag": "v1.36.3"}) == "registry.k8s.io/kube-scheduler:v1.36.3"
    assert _image(image={"tag": "v1.36.3", "digest": digest}) == f"registry.k8s.io/kube-scheduler@{digest}"


def _image(image: object = None, versions: tuple[str, ...] = ("v1.37.1",)) -> object:
    made = planned(cluster=facts(server_versions=versions), image=image)
    spec = named(made, "Deployment")["spec"]["template"]["spec"]
    (found,) = {one["image"] for one in spec["initContainers"] + spec["containers"]}
    return found

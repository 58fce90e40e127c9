"""What a Binding that names a version of its pod is good for: it lands on that very pod, or not at all.

A grant of devices is written down together with the version of the pod that its Binding will name. These facts decide
when such a grant may be forgotten.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MappingProxyType

import pytest

from extender import Scene
from extender.replies import always, refusing
from testbed.api import ApiError, Object

_GRANT = MappingProxyType({"fairlead.dev/devices.gpu": "1"})


def _version(scene: Scene) -> str:
    return str(scene.pod("web")["metadata"]["resourceVersion"])


def _bind(scene: Scene, version: str, uid: str = "") -> None:
    """Bind `web` to `n1`, with a grant, if it still is of that version, and of that UID: else of the one it has."""
    known = {"PodName": "web", "PodUID": uid or scene.pod("web")["metadata"]["uid"], "Node": "n1"}
    scene.bind(known, resourceVersion=version, annotations={**_GRANT})


@contextmanager
def _refused_by_version(scene: Scene) -> Iterator[None]:
    with pytest.raises(ApiError, match="Precondition failed: ResourceVersion in precondition") as error:
        yield
    assert error.value.status == 409
    pod = scene.pod("web")
    assert "nodeName" not in pod["spec"]
    assert not _GRANT.keys() & pod["metadata"].get("annotations", {}).keys()


_CHANGES = MappingProxyType(
    {
        "metadata": ("", {"metadata": {"labels": {"tier": "front"}}}),
        "status": ("/status", {"status": {"message": "changed"}}),
    }
)


@pytest.mark.parametrize(("subresource", "change"), _CHANGES.values(), ids=_CHANGES)
def test_it_is_refused_once_the_pod_has_another_and_lands_with_the_current_one(
    scene: Scene, subresource: str, change: Object
) -> None:
    scene.make_nodes(1)
    scene.make_pod("web")
    before = _version(scene)
    scene.api.patch(f"{scene.path}/web{subresource}", change)
    with _refused_by_version(scene):
        _bind(scene, before)
    _bind(scene, _version(scene))
    assert scene.placed("web") == "n1"
    assert scene.pod("web")["metadata"]["annotations"] == _GRANT


def test_a_version_that_the_pod_does_not_have_yet_is_refused_too(scene: Scene) -> None:
    scene.make_nodes(1)
    scene.make_pod("web")
    with _refused_by_version(scene):
        _bind(scene, str(int(_version(scene)) + 1_000_000))


def test_the_current_version_does_not_help_a_binding_of_another_uid(scene: Scene) -> None:
    scene.make_nodes(1)
    scene.make_pod("web")
    with pytest.raises(ApiError, match="Precondition failed: UID") as refused:
        _bind(scene, _version(scene), uid="another")
    assert refused.value.status == 409
    assert "nodeName" not in scene.pod("web")["spec"]


def test_versions_of_a_pod_are_numbers_that_grow(scene: Scene) -> None:
    """Also over its name: who comes after a pod that is gone begins with a greater one."""
    scene.make_nodes(1)
    versions = []
    for number in range(3):
        scene.make_pod("web")
        versions.append(_version(scene))
        scene.api.patch(f"{scene.path}/web", {"metadata": {"labels": {"number": str(number)}}})
        versions.append(_version(scene))
        scene.api.delete(f"{scene.path}/web")
    assert all(version.isdecimal() for version in versions)
    numbers = [int(version) for version in versions]
    assert numbers == sorted({*numbers})


def _does_not_fit(scene: Scene) -> str:
    """No node has room."""
    scene.make_pod("web", cpu="64")
    before = _version(scene)
    scene.start(scene.recorder.entry("gate", "filter", "bind"))
    scene.refusal("web")
    return before


def _is_filtered(scene: Scene) -> str:
    """The extender refuses every node."""
    scene.recorder.replies["gate/filter"] = refusing("n1", reason="no device free")
    scene.make_pod("web")
    before = _version(scene)
    scene.start(scene.recorder.entry("gate", "filter", "bind"))
    scene.refusal("web")
    return before


def _bind_fails(scene: Scene) -> str:
    """The bind verb answers an error."""
    seen: list[str] = []

    def reply(_: Object) -> Object:
        seen.append(_version(scene))
        return {"Error": "no device free"}

    scene.recorder.replies["gate/bind"] = reply
    scene.start(scene.recorder.entry("gate", "filter", "bind"))
    scene.make_pod("web")
    scene.refusal("web", "SchedulerError")
    return seen[0]


def _bind_is_given_up(scene: Scene) -> str:
    """The bind verb answers nothing for as long as the scheduler waits: the case in which a Binding comes late."""
    seen: list[str] = []

    def reply(_: Object) -> Object:
        seen.append(_version(scene))
        scene.refusal("web", "SchedulerError")
        return {"Error": "too late"}

    scene.recorder.replies["gate/bind"] = reply
    scene.start(scene.recorder.entry("gate", "filter", "bind", httpTimeout="1s"))
    scene.make_pod("web")
    scene.refusal("web", "SchedulerError")
    return seen[0]


_FAILURES: MappingProxyType[str, Callable[[Scene], str]] = MappingProxyType(
    {
        "does not fit": _does_not_fit,
        "is filtered": _is_filtered,
        "bind fails": _bind_fails,
        "bind is given up": _bind_is_given_up,
    }
)


@pytest.mark.parametrize("fail", _FAILURES.values(), ids=_FAILURES)
def test_what_the_scheduler_writes_on_a_pod_that_it_failed_to_place_is_another_version(
    scene: Scene, fail: Callable[[Scene], str]
) -> None:
    """So room that was granted to the failed try is free again: its Binding cannot land any more."""
    scene.make_nodes(1)
    before = fail(scene)
    assert int(_version(scene)) > int(before)
    with _refused_by_version(scene):
        _bind(scene, before)


def test_the_same_failure_once_more_is_no_other_version(scene: Scene) -> None:
    """So a grant of a pod that fails again and again is not over; the next try finds it and needs no other."""
    scene.make_nodes(1)
    scene.recorder.replies["gate/bind"] = always({"Error": "no device free"})
    scene.start(scene.recorder.entry("gate", "filter", "bind"))
    scene.make_pod("web")
    scene.refusal("web", "SchedulerError")
    before, tries = _version(scene), len(scene.recorder.of("gate/bind"))
    scene.called("gate/bind", pod="web", times=tries + 2)
    assert _version(scene) == before
    _bind(scene, before)
    assert scene.placed("web") == "n1"

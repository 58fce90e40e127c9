from pathlib import Path

import pytest

from testbed import machine, providers
from testbed.errors import ClusterError
from testbed.layout import folder_of
from testbed.providers import folder

_CHOICES = {
    "nothing is up and Docker will do": (None, None, "", "kind"),
    "nothing is up and Docker will not do": (None, None, "there is no docker", "local"),
    "what raised it is taken, whatever Docker can do": (None, "local", "", "local"),
    "what is asked for is taken, whatever Docker can do": ("existing", None, "", "existing"),
    "what is asked for is what raised it": ("kind", "kind", "there is no docker", "kind"),
    "a marker that is empty says nothing": (None, "", "there is no docker", "local"),
}


@pytest.mark.parametrize(("asked", "there", "obstacle", "wanted"), _CHOICES.values(), ids=_CHOICES)
def test_the_provider_is_the_one_asked_for_or_there_or_the_best(
    asked: str | None, there: str | None, obstacle: str, wanted: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "docker_obstacle", lambda: obstacle)
    if there is not None:
        folder.claim("one", there)
    chosen = providers.choose("one", asked)
    assert type(chosen).__name__ == wanted.capitalize()
    assert chosen.cluster == "one"


def test_docker_is_not_asked_where_the_answer_is_known(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "docker_obstacle", lambda: pytest.fail("was asked"))
    providers.choose("one", "local")
    folder.claim("one", "kind")
    providers.choose("one")


def test_why_docker_will_not_do_is_said(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "docker_obstacle", lambda: "there is no docker command")
    providers.choose("one")
    said = "provider: local, which needs no Docker (kind would: there is no docker command)\n"
    assert capsys.readouterr().err == said


def test_a_cluster_of_another_provider_is_refused_with_both_ways_out(own_cache: Path) -> None:
    folder.claim("one", "kind")
    with pytest.raises(ClusterError) as raised:
        providers.choose("one", "local")
    assert raised.value.what == "the cluster one was raised by kind, not local"
    assert "--provider kind" in raised.value.cure
    assert "--name" in raised.value.cure


@pytest.mark.parametrize("asked", ["docker", None])
def test_a_provider_that_there_is_not_is_refused(asked: str | None, own_cache: Path) -> None:
    if asked is None:
        folder.claim("one", "minikube")
    with pytest.raises(ClusterError, match="choose one of: local, kind, existing"):
        providers.choose("one", asked)


def test_a_local_cluster_does_not_take_down_what_another_provider_raised(own_cache: Path) -> None:
    folder.claim("one", "kind")
    for act in (providers.Local("one").up, providers.Local("one").down):
        with pytest.raises(ClusterError, match="was raised by kind"):
            act()
    assert folder_of("one").exists()


_SERVERS = {"v1.36.9": "1.36.3", "v1.35.4+k3s1": "1.35.4", "v1.12.0": "1.37.1", "": "1.37.1"}


@pytest.mark.parametrize(("server", "wanted"), _SERVERS.items(), ids=_SERVERS)
def test_kubectl_is_of_the_servers_minor_version_where_we_have_it(server: str, wanted: str) -> None:
    assert folder.nearest(server) == wanted

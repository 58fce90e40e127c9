"""What kind and Docker are asked to do, by commands in their place that write down what they are asked."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from testbed import machine
from testbed.api import Api
from testbed.errors import ClusterError
from testbed.layout import folder_of
from testbed.providers import Kind, Part, folder, kind_nodes

_NAME = "spec"
_NODE = f"{_NAME}-control-plane"
_FAKE = Path(__file__).with_name("fake-docker.sh")
_FORMAT = "{{.Names}}\t{{.State}}\t{{.Image}}"
_LIST = f"docker ps --all --filter label=io.x-k8s.kind.cluster={_NAME} --format {_FORMAT}"
_KUBECONFIG = {
    "current-context": "x",
    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "x", "user": {"token": "t"}}],
}


@dataclass(slots=True)
class Engine:
    """The commands in place of kind and Docker."""

    folder: Path
    settled: list[Sequence[str]] = field(default_factory=list)
    broken: int = 0

    def calls(self) -> list[str]:
        """What was asked since the last look."""
        file = self.folder / "calls"
        calls = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [call for call in calls if call != _LIST]

    def has(self, state: str, version: str = "1.36.3") -> None:
        (self.folder / "containers").write_text(f"{_NODE}\t{state}\tkindest/node:v{version}\n")

    def fails(self, *commands: str) -> None:
        (self.folder / "fails").write_text("".join(f"{command}\n" for command in commands))

    def settle(self, _: Api, nodes: Sequence[str]) -> None:
        if self.broken:
            self.broken -= 1
            raise ClusterError("waited in vain")
        self.settled.append(nodes)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    programs, fake = tmp_path / "bin", tmp_path / "fake"
    for one in (programs, fake):
        one.mkdir()
    for name in ("docker", "kind"):
        (programs / name).symlink_to(_FAKE)
    (fake / "kubeconfig").write_text(yaml.safe_dump(_KUBECONFIG))
    (fake / "image").touch()
    engine = Engine(fake)
    for name, value in {"FAKE": fake, "CLUSTER": _NAME, "FAIRLEAD_CACHE": tmp_path / "cache"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(machine, "docker_obstacle", lambda: "")
    monkeypatch.setattr(kind_nodes, "settle", engine.settle)
    return engine


def _create() -> str:
    own = folder_of(_NAME)
    return f"kind create cluster --config={own}/kind.yaml --kubeconfig={own}/kubeconfig --name {_NAME}"


def _delete() -> str:
    return f"kind delete cluster --kubeconfig={folder_of(_NAME)}/kubeconfig --name {_NAME}"


_ASK = f"kind get kubeconfig --name {_NAME}"


def test_up_creates_a_cluster_and_never_touches_the_users_kubeconfig(engine: Engine) -> None:
    Kind(_NAME).up()
    assert engine.calls() == [_create(), _ASK]
    assert folder.raised_by(_NAME) == "kind"
    assert Kind(_NAME).kubeconfig().stat().st_mode & 0o777 == 0o600
    assert engine.settled == [[_NODE]]


def test_up_again_only_sees_that_it_answers(engine: Engine) -> None:
    Kind(_NAME).up()
    engine.calls()
    Kind(_NAME).up()
    assert engine.calls() == [_ASK]


def test_a_version_that_is_not_published_is_made(engine: Engine) -> None:
    (engine.folder / "image").unlink()
    Kind(_NAME, kubernetes="1.36.3").up()
    image = "kindest/node:v1.36.3"
    assert engine.calls() == [
        f"docker image inspect {image}",
        f"docker pull --quiet {image}",
        f"kind build node-image v1.36.3 --image {image}",
        _create(),
        _ASK,
    ]
    assert yaml.safe_load((folder_of(_NAME) / "kind.yaml").read_text())["nodes"][0]["image"] == image


def test_a_node_that_stands_still_is_started(engine: Engine) -> None:
    Kind(_NAME).up()
    engine.has("exited")
    assert [part.is_well for part in Kind(_NAME).status()] == [False]
    engine.calls()
    Kind(_NAME).up()
    assert engine.calls() == [f"docker start {_NODE}", _ASK]
    assert Kind(_NAME).status() == [Part(_NODE, "running", "kindest/node:v1.36.3")]


def test_a_cluster_that_does_not_answer_is_made_anew(engine: Engine) -> None:
    Kind(_NAME).up()
    engine.calls()
    engine.broken = 1
    Kind(_NAME).up()
    assert engine.calls() == [_ASK, _delete(), _create(), _ASK]


def test_a_cluster_whose_node_is_gone_is_made_anew(engine: Engine) -> None:
    Kind(_NAME).up()
    (engine.folder / "containers").unlink()
    assert [(part.name, part.state) for part in Kind(_NAME).status()] == [(_NODE, "gone")]
    engine.calls()
    Kind(_NAME).up()
    assert engine.calls() == [_create(), _ASK]


def test_somebody_elses_cluster_of_that_name_is_left_alone(engine: Engine) -> None:
    engine.has("running")
    with pytest.raises(ClusterError, match="that the testbed did not raise"):
        Kind(_NAME).up()
    Kind(_NAME).down()
    assert engine.calls() == []
    assert Kind(_NAME).status() == []


def test_another_version_is_refused_while_one_is_up(engine: Engine) -> None:
    Kind(_NAME).up()
    engine.calls()
    with pytest.raises(ClusterError, match=r"with Kubernetes 1\.36\.3, not 1\.35\.4"):
        Kind(_NAME, kubernetes="1.35.4").up()
    assert engine.calls() == []


def test_a_start_that_fails_shows_what_kind_said_and_can_be_taken_down(engine: Engine) -> None:
    engine.fails("kind create")
    with pytest.raises(ClusterError, match="kind create failed, by order"):
        Kind(_NAME).up()
    engine.calls()
    Kind(_NAME).down()
    assert engine.calls() == [_delete()]
    assert not folder_of(_NAME).exists()


def test_down_keeps_its_folder_until_kind_has_deleted_the_cluster(engine: Engine) -> None:
    Kind(_NAME).up()
    engine.fails("kind delete")
    with pytest.raises(ClusterError, match="see that Docker answers"):
        Kind(_NAME).down()
    assert folder.raised_by(_NAME) == "kind"


def test_an_image_archive_is_given_to_kind(engine: Engine, tmp_path: Path) -> None:
    Kind(_NAME).up()
    engine.calls()
    Kind(_NAME).load(tmp_path / "image.tar")
    assert engine.calls() == [f"kind load image-archive {shlex.quote(str(tmp_path))}/image.tar --name {_NAME}"]
    engine.fails("kind load")
    with pytest.raises(ClusterError, match="kind load failed, by order"):
        Kind(_NAME).load(tmp_path / "image.tar")


def test_the_logs_are_those_of_the_node_and_of_kind(engine: Engine) -> None:
    assert Kind(_NAME).logs() == {}
    Kind(_NAME).up()
    assert Kind(_NAME).logs() == {"kind": "", "node/kubelet": "up\n", "node/containers/etcd": "hello\n"}
    engine.fails("kind export")
    assert Kind(_NAME).logs() == {"kind": "", "kind-export-logs": "kind export failed, by order\n"}


def test_a_docker_that_does_not_answer_is_named_with_the_way_around(engine: Engine) -> None:
    engine.fails("docker ps")
    with pytest.raises(ClusterError, match=r"(?s)Docker does not answer: docker ps failed.*--provider local"):
        Kind(_NAME).up()


def test_a_machine_that_cannot_run_it_is_told_why(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "docker_obstacle", lambda: "no privileged containers")
    with pytest.raises(ClusterError, match="no privileged containers"):
        Kind(_NAME).up()
    assert not folder_of(_NAME).exists()


def test_a_cluster_without_its_node_cannot_be_had(engine: Engine) -> None:
    with pytest.raises(ClusterError, match="has a real node"):
        Kind(_NAME, node=False).up()

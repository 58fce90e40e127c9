"""What kind and Docker are asked to do, by commands in their place that write down what they are asked."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from testbed import build, machine
from testbed.api import Api
from testbed.errors import ClusterError
from testbed.layout import folder_of
from testbed.providers import Kind, Part, folder, kind_config, kind_nodes
from testbed.providers.kind_tool import Tool
from testbed.versions import KIND, KIND_NODES, KUBERNETES

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
    renewed: bool = False

    def calls(self) -> list[str]:
        """What was asked since the last look."""
        file = self.folder / "calls"
        calls = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [call for call in calls if call not in (_LIST, "kind version")]

    def has(self, state: str, version: str = "1.36.3") -> None:
        (self.folder / "containers").write_text(f"{_NODE}\t{state}\tkindest/node:v{version}\n")

    def fails(self, *commands: str) -> None:
        (self.folder / "fails").write_text("".join(f"{command}\n" for command in commands))

    def settle(self, _: Api, nodes: Sequence[str], *, renewed: bool) -> None:
        self.renewed = renewed
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
    (fake / "kind-version").write_text(KIND)
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


_IMAGE = f"docker image inspect {kind_config.image(KUBERNETES[0])}"
_ASK = f"kind get kubeconfig --name {_NAME}"


def test_up_creates_a_cluster_and_never_touches_the_users_kubeconfig(engine: Engine) -> None:
    Kind(_NAME).up()
    assert engine.calls() == [_IMAGE, _create(), _ASK]
    assert folder.raised_by(_NAME) == "kind"
    assert Kind(_NAME).kubeconfig().stat().st_mode & 0o777 == 0o600
    assert (engine.settled, engine.renewed) == ([[_NODE]], False)


def test_up_again_only_sees_that_it_answers_and_that_its_kubelet_lives(engine: Engine) -> None:
    Kind(_NAME).up()
    engine.calls()
    Kind(_NAME).up()
    assert engine.calls() == [_ASK]
    assert engine.renewed


def test_what_kind_does_is_told_step_by_step(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    Kind(_NAME).up()
    assert "  Preparing nodes\n" in capsys.readouterr().err


def test_the_image_of_the_minor_version_is_pulled_before_kind_wants_it(
    engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    (engine.folder / "image").unlink()
    (engine.folder / "pulled").touch()
    Kind(_NAME, kubernetes="1.36.3").up()
    image = KIND_NODES["1.36"]
    assert engine.calls() == [f"docker image inspect {image}", f"docker pull {image}", _create(), _ASK]
    assert yaml.safe_load((folder_of(_NAME) / "kind.yaml").read_text())["nodes"][0]["image"] == image
    assert f"pulling {image}, about 400 MB\npull: progress\n" in capfd.readouterr().err


def test_an_image_that_cannot_be_pulled_is_named(engine: Engine) -> None:
    (engine.folder / "image").unlink()
    with pytest.raises(ClusterError, match=r"(?s)Docker cannot pull kindest/node:v1.*mirror"):
        Kind(_NAME).up()


_VERSIONS = {"the pinned one": (KIND, "kind"), "an older one": ("0.30.0", "own"), "a newer one": ("0.34.0", "own")}


@pytest.mark.parametrize(("version", "used"), _VERSIONS.values(), ids=_VERSIONS)
def test_kind_from_path_is_used_only_if_it_is_of_the_pinned_version(
    version: str, used: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = engine.folder / "own"
    own.symlink_to(_FAKE)
    monkeypatch.setattr(build, "build", lambda _: {"kind": own})
    (engine.folder / "kind-version").write_text(version)
    Tool(_NAME, engine.folder).kind("get", "nodes")
    assert engine.calls() == [f"{used} get nodes --name {_NAME}"]


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
    assert engine.calls() == [_ASK, _delete(), _IMAGE, _create(), _ASK]


def test_a_cluster_whose_node_is_gone_is_made_anew(engine: Engine) -> None:
    Kind(_NAME).up()
    (engine.folder / "containers").unlink()
    assert [(part.name, part.state) for part in Kind(_NAME).status()] == [(_NODE, "gone")]
    engine.calls()
    Kind(_NAME).up()
    assert engine.calls() == [_IMAGE, _create(), _ASK]


def test_somebody_elses_cluster_of_that_name_is_left_alone(engine: Engine) -> None:
    engine.has("running")
    with pytest.raises(ClusterError, match="that the testbed did not raise"):
        Kind(_NAME).up()
    Kind(_NAME).down()
    assert engine.calls() == []
    assert Kind(_NAME).status() == []


def test_another_minor_version_is_refused_while_one_is_up(engine: Engine) -> None:
    Kind(_NAME).up()
    engine.calls()
    with pytest.raises(ClusterError, match=r"with Kubernetes 1\.36\.3, not 1\.35"):
        Kind(_NAME, kubernetes="1.35.4").up()
    assert engine.calls() == []
    engine.has("running", "1.36.4")
    Kind(_NAME, kubernetes="1.36.3").up()
    assert engine.calls() == [_ASK]


def test_a_start_that_fails_shows_what_kind_said_and_can_be_taken_down(engine: Engine) -> None:
    engine.fails("kind create")
    with pytest.raises(ClusterError, match="failed: ERROR: kind create failed, by order"):
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
    with pytest.raises(ClusterError, match=r"image.tar could not be loaded: ERROR: kind load failed, by order"):
        Kind(_NAME).load(tmp_path / "image.tar")


def test_the_logs_are_those_of_the_node_and_of_kind(engine: Engine) -> None:
    assert Kind(_NAME).logs() == {}
    Kind(_NAME).up()
    logs = Kind(_NAME).logs()
    assert "Preparing nodes" in logs.pop("kind")
    assert logs == {"node/kubelet": "up\n", "node/containers/etcd": "hello\n"}
    engine.fails("kind export")
    assert Kind(_NAME).logs()["kind-export-logs"].startswith("ERROR: kind export failed, by order\n")


def test_a_docker_that_does_not_answer_is_named_with_the_way_around(engine: Engine) -> None:
    engine.fails("docker ps")
    with pytest.raises(ClusterError, match=r"(?s)Docker does not answer: ERROR: docker ps failed.*--provider local"):
        Kind(_NAME).up()


def test_a_machine_that_cannot_run_it_is_told_why(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "docker_obstacle", lambda: "no privileged containers")
    with pytest.raises(ClusterError, match="no privileged containers"):
        Kind(_NAME).up()
    assert not folder_of(_NAME).exists()


def test_a_cluster_without_its_node_cannot_be_had(engine: Engine) -> None:
    with pytest.raises(ClusterError, match="has a real node"):
        Kind(_NAME, node=False).up()

from pathlib import Path

import pytest

from testbed import cli, providers
from testbed.errors import ClusterError
from testbed.providers import Local, Part, folder


@pytest.fixture(autouse=True)
def local(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Docker, whose shell says nothing of the testbed."""
    for name in ("FAIRLEAD_CLUSTER", "FAIRLEAD_PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    folder.claim(cli.DEFAULT_NAME, "local")


_REFUSED = {
    "no command": [],
    "a command that there is not": ["start"],
    "a provider that there is not": ["--provider", "minikube", "up"],
    "a version that cannot be built": ["up", "--kubernetes", "1.2.3"],
    "too many nodes": ["nodes", "20001"],
    "less than no nodes": ["nodes", "-1"],
    "nodes that are no number": ["nodes", "many"],
}


@pytest.mark.parametrize("arguments", _REFUSED.values(), ids=_REFUSED)
def test_what_cannot_be_meant_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 2
    assert "usage: python -m testbed" in capsys.readouterr().err


_UPS = {
    "nothing is asked for": (["up"], None, None),
    "a version": (["up", "--kubernetes", "1.36.3"], "1.36.3", None),
    "with a node": (["up", "--node"], None, True),
    "without a node": (["up", "--no-node"], None, False),
    "with groups": (["up", "--gates"], None, None),
}


@pytest.mark.parametrize(("arguments", "kubernetes", "node"), _UPS.values(), ids=_UPS)
def test_up_passes_on_only_what_is_asked_for(
    arguments: list[str], kubernetes: str | None, node: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def choose(name: str, provider: str | None, **wanted: object) -> Local:
        asked.append((name, provider, wanted))
        return Local(name)

    monkeypatch.setattr(providers, "choose", choose)
    monkeypatch.setattr(Local, "up", lambda _: None)
    assert cli.main(["--name", "other", "--provider", "local", *arguments]) == 0
    assert asked == [("other", "local", {"kubernetes": kubernetes, "node": node, "gates": "--gates" in arguments})]


def test_a_failure_is_told_with_what_to_do_next(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        error = ClusterError("etcd ended", cure="see its log")
        error.add_note("  while: control plane")
        raise error

    monkeypatch.setattr(Local, "up", fail)
    assert cli.main(["up"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: etcd ended",
        "  next: see its log",
        "  while: control plane",
    ]


_STATUS = {
    "all is well": ([Part("etcd", "running"), Part("kwok", "running")], 0),
    "a part is dead": ([Part("etcd", "dead", "its log: x"), Part("kwok", "running")], 1),
    "it is down": ([], 1),
}


@pytest.mark.parametrize(("parts", "wanted"), _STATUS.values(), ids=_STATUS)
def test_status_says_by_its_exit_whether_all_is_well(
    parts: list[Part], wanted: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Local, "status", lambda _: parts)
    assert cli.main(["status"]) == wanted
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == max(1, len(parts))


def test_env_is_what_a_shell_reads(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Local, "kubeconfig", lambda _: Path("/a folder/kubeconfig"))
    monkeypatch.setattr(Local, "programs", lambda _: [Path("/one"), Path("/two")])
    monkeypatch.setattr("sys.executable", "/venv/bin/python")
    assert cli.main(["env"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "export KUBECONFIG='/a folder/kubeconfig'",
        'export PATH=/one:/two:/venv/bin:"$PATH"',
    ]


def test_logs_of_a_component_that_there_is_not_names_those_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Local, "logs", lambda _: {"etcd": "one\ntwo\n", "kwok": "three\n"})
    assert cli.main(["logs", "kubelet"]) == 1
    assert "name one of: etcd, kwok" in capsys.readouterr().err
    assert cli.main(["logs"]) == 0
    assert capsys.readouterr().out.splitlines() == ["etcd | one", "etcd | two", "kwok | three"]


def test_an_image_archive_that_there_is_not_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["load", str(tmp_path / "gone.tar")]) == 1
    assert "gone.tar" in capsys.readouterr().err

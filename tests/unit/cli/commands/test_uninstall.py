"""`fairlead uninstall` before anything is deleted."""

from pathlib import Path

import pytest
import yaml

from fairlead.cli.main import main

_CONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}


def test_cluster_that_cannot_be_reached_has_the_code_of_other_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(yaml.safe_dump(_CONFIG))
    assert main(["uninstall", "--kubeconfig", str(kubeconfig), "--within", "1s"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fairlead uninstall: ")
    assert "127.0.0.1:1" in line
    assert line.endswith("check that the cluster is up, and that --kubeconfig and --context select the right one")


def test_time_that_cannot_be_read_is_refused_before_the_cluster_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uninstall", "--within", "soon"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fairlead uninstall: --within")

"""Suites, links and folders of strangers: nothing outside the trees of what the command line names is read or shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from fairlead.cli.inputs.files import Trees, files
from fairlead.cli.inputs.suite_files import Suites
from fairlead.cli.main import main

POLICY: Final = """apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata: {name: p}
spec: {filters: [{name: f, expression: node.spec.unschedulable == false}]}
"""
SUITE: Final = """policies: [%s]
nodes: [{metadata: {name: a}}]
cases: [{name: passes, pod: {}, expect: {passed: [a]}}]
"""
SECRET: Final = "AWS_SECRET_ACCESS_KEY=hunter2value: \t%"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a secret, and beside it the checkout of a stranger's pull request, which is the working directory."""
    (tmp_path / "environ").write_text(SECRET)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret.yaml").write_text(SECRET)
    (tmp_path / "checkout" / "policies").mkdir(parents=True)
    (tmp_path / "checkout" / "tests").mkdir()
    (tmp_path / "checkout" / "policies" / "p.yaml").write_text(POLICY)
    monkeypatch.chdir(tmp_path / "checkout")
    return tmp_path


def _in_git(machine: Path) -> None:
    (machine / "checkout" / ".git").mkdir()


def _without_git(_: Path) -> None:
    pass


def _linked(target: str) -> Callable[[Path], None]:
    def put(machine: Path) -> None:
        (machine / "checkout" / "policies" / "leak.yaml").symlink_to(target)

    return put


def _suite(policies: str) -> Callable[[Path], None]:
    def put(machine: Path) -> None:
        (machine / "checkout" / "tests" / "a.test.yaml").write_text(SUITE % policies.replace("MACHINE", str(machine)))

    return put


def _whole_folder(machine: Path) -> None:
    (machine / "checkout" / "policies" / "leak").symlink_to("../../home", target_is_directory=True)


def _linked_suite(machine: Path) -> None:
    (machine / "checkout" / "tests" / "leak.test.yaml").symlink_to("../../environ")


ATTACKS: Final[dict[str, tuple[Callable[[Path], None], list[str]]]] = {
    "a suite that names a file": (_suite("MACHINE/environ"), ["test", "tests"]),
    "a suite that names a file above": (_suite("../../environ"), ["test", "tests"]),
    "a suite that names a directory": (_suite("../../home"), ["test", "tests/a.test.yaml"]),
    "a suite that names the environment": (_suite("/proc/self/environ"), ["test", "tests"]),
    "a suite that names a link": (
        lambda machine: (_linked("../../environ")(machine), _suite("../policies/leak.yaml")(machine), None)[-1],
        ["test", "tests"],
    ),
    "a suite that is a link": (_linked_suite, ["test", "tests"]),
    "a link in a folder that is linted": (_linked("../../environ"), ["lint", "policies"]),
    "a link to the environment": (_linked("/proc/self/environ"), ["lint", "policies"]),
    "a link to a directory": (_whole_folder, ["lint", "policies"]),
    "a link that is rendered": (_linked("../../environ"), ["render", "policies"]),
    "a link that is imported": (_linked("../../environ"), ["import", "policies"]),
    "a link among policies to compare": (
        _linked("../../environ"),
        ["diff", "--from", "policies/p.yaml", "--to", "policies", "--snapshot", "s.yaml", "--pods", "s.yaml"],
    ),
    "a link in the folder of a snapshot": (
        _linked("../../environ"),
        ["explain", "a", "--policies", "policies/p.yaml", "--snapshot", "policies"],
    ),
}


@pytest.mark.parametrize("checkout", [_in_git, _without_git])
@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_outside_the_checkout_is_read(
    attack: str, checkout: Callable[[Path], None], machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout(machine)
    put, arguments = ATTACKS[attack]
    put(machine)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert "hunter2" not in out + err
    assert f"outside of {machine}/checkout; to read it, name that path on the command line" in out + err


def test_an_error_names_the_field_of_the_suite(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _suite("MACHINE/environ")(machine)
    assert main(["test", "tests"]) == 2
    assert capsys.readouterr().err.splitlines()[0] == (
        f"tests/a.test.yaml:1:12: error: policies[0]: {machine}/environ: cannot be read: it is outside of "
        f"{machine}/checkout; to read it, name that path on the command line"
    )


def test_a_link_in_a_checkout_is_not_its_target_even_if_it_is_named(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some checks name each file that a pull request changes."""
    _in_git(machine)
    _linked("../../environ")(machine)
    _whole_folder(machine)
    (machine / "home" / ".git").mkdir()  # another repository on the same machine
    (machine / "home" / "sub").mkdir()
    (machine / "home" / "sub" / "more.yaml").write_text(SECRET)
    for name in ("policies/leak.yaml", "policies/leak", "policies/leak/sub", "policies/leak/sub/more.yaml"):
        assert main(["lint", name]) == 2
    out, err = capsys.readouterr()
    assert "hunter2" not in out + err
    assert out.count("outside of") == 4


def test_what_the_command_line_names_is_read(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _in_git(machine)
    (machine / "home" / "secret.yaml").write_text(POLICY)
    _suite("../../home/secret.yaml")(machine)
    assert main(["test", "tests"]) == 2
    assert main(["test", "tests", "../home"]) == 0
    _whole_folder(machine)
    assert main(["lint", "policies"]) == 2
    assert main(["lint", "policies", "../home"]) == 0  # a name that is used twice is only a warning
    (machine / "link.yaml").symlink_to(machine / "home" / "secret.yaml")
    assert main(["lint", str(machine / "link.yaml")]) == 0  # no checkout holds it
    capsys.readouterr()


def test_links_and_paths_within_a_repository_are_followed(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _in_git(machine)
    (machine / "checkout" / "tests" / "deep").mkdir()
    (machine / "checkout" / "tests" / "deep" / "p").symlink_to("../../policies", target_is_directory=True)
    (machine / "checkout" / "tests" / "deep" / "a.test.yaml").write_text(SUITE % "p, ../../policies/p.yaml")
    (machine / "there").symlink_to("checkout", target_is_directory=True)
    for where, name in [
        ("checkout", "tests"),
        ("checkout/tests/deep", "."),
        ("checkout/tests/deep", "a.test.yaml"),
        (".", "there/tests"),
        ("/", f"{machine}/there/tests/deep/a.test.yaml"),
    ]:
        monkeypatch.chdir(machine / where)
        suites = Suites()
        suites.load([name])
        assert (suites.findings, len(suites.loaded)) == ([], 1)


def test_a_suite_on_standard_input_reads_from_the_working_directory(machine: Path) -> None:
    assert not Trees(["-"]).fault("policies/p.yaml")
    assert Trees(["-"]).fault("../environ")
    _in_git(machine)
    assert not Trees(["-"]).fault("policies/p.yaml")


def test_the_root_of_the_machine_is_no_tree(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    trees = Trees([str(machine / "checkout" / "tests")])
    assert not trees.fault(str(machine / "checkout" / "tests" / "a.test.yaml"))
    assert trees.fault(str(machine / "environ"))


def test_a_directory_as_kubernetes_mounts_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "..data-1").mkdir()
    (tmp_path / "..data-1" / "p.yaml").write_text(POLICY)
    (tmp_path / "..data").symlink_to("..data-1", target_is_directory=True)
    (tmp_path / "p.yaml").symlink_to("..data/p.yaml")
    assert [(file.name, file.data) for file in files([str(tmp_path)])] == [(f"{tmp_path}/p.yaml", POLICY.encode())]

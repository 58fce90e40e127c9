import os
from pathlib import Path

import pytest

from testbed import packages
from testbed.errors import ClusterError

_BARE = ["containerd", "containerd-shim-runc-v2", "ctr", "runc", "nft", "iptables", "conntrack", "bridge", "portmap"]
_PACKAGES: dict[str, tuple[list[str], list[str]]] = {
    "nothing is missing": ([], []),
    "Docker's containerd.io lacks only the plugins": (["bridge", "portmap"], ["containernetworking-plugins"]),
    "one program of a package is enough": (["ctr"], ["containerd"]),
    "a bare machine": (
        _BARE,
        ["conntrack", "containerd", "containernetworking-plugins", "iptables", "nftables", "runc"],
    ),
    "programs of one package bring it once": (["nsenter", "unshare", "ip"], ["iproute2", "util-linux"]),
}


@pytest.mark.parametrize(("missing", "wanted"), _PACKAGES.values(), ids=_PACKAGES)
def test_missing_programs_name_their_packages(missing: list[str], wanted: list[str]) -> None:
    assert packages.packages_of(packages.NODE, missing) == wanted


@pytest.mark.parametrize("missing", [[], ["runc"], ["bridge", "conntrack"]])
def test_only_what_is_not_found_is_missing(missing: list[str]) -> None:
    assert sorted(packages.find_missing(packages.NODE, lambda name: name not in missing)) == sorted(missing)


_SYSTEMS = {
    "Debian": ({"ID": "debian"}, True),
    "Ubuntu": ({"ID": "ubuntu", "ID_LIKE": "debian"}, True),
    "Mint, which is made from both": ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, True),
    "Fedora": ({"ID": "fedora"}, False),
    "a name that only begins so": ({"ID": "debianish"}, False),
    "a system that does not say": ({}, False),
}


@pytest.mark.parametrize(("distribution", "wanted"), _SYSTEMS.values(), ids=_SYSTEMS)
def test_the_command_to_paste_is_printed_where_it_would_work(distribution: dict[str, str], wanted: bool) -> None:
    said = str(packages.refusal(packages.NODE, ["ctr", "nft"], distribution))
    assert "a real node needs ctr and nft" in said
    assert ("sudo apt-get install -y --no-install-recommends --no-remove containerd nftables" in said) is wanted
    assert ("(on Debian: containerd, nftables); or `up --no-node` does without" in said) is not wanted


def test_who_builds_an_image_is_not_told_of_nodes() -> None:
    said = str(packages.refusal(packages.IMAGE, ["buildah"], {"ID": "fedora"}))
    assert "an image of the operator needs buildah" in said
    assert "--no-node" not in said


class Apt:
    """apt-get that answers with these exit statuses, in their order."""

    def __init__(self, *answers: int) -> None:
        self.answers = [*answers]
        self.calls: list[str] = []

    def __call__(self, command: list[str], log: Path) -> int:
        self.calls.append(command[1])
        log.write_text(f"what apt-get said about {command[1]}\n")
        return self.answers.pop(0)


_INSTALLATIONS = {
    "the lists are good": ([0], ["install"], ""),
    "the lists are old": ([100, 0, 0, 0], ["install", "--configure", "update", "install"], ""),
    "an installation was interrupted": ([100, 1], ["install", "--configure"], "what apt-get said about --configure"),
    "there is no network": ([100, 0, 100], ["install", "--configure", "update"], "what apt-get said about update"),
    "the package does not exist": (
        [100, 0, 0, 100],
        ["install", "--configure", "update", "install"],
        "what apt-get said about install",
    ),
}


@pytest.mark.parametrize(("answers", "calls", "wrong"), _INSTALLATIONS.values(), ids=_INSTALLATIONS)
def test_more_than_one_command_is_run_only_when_it_has_to_be(
    answers: list[int],
    calls: list[str],
    wrong: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    apt = Apt(*answers)
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path))
    monkeypatch.setattr(packages, "_run", apt)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(packages, "_distribution", lambda: {"ID": "debian"})
    monkeypatch.setattr(packages, "_find", lambda name: name != "conntrack" or (apt.calls and not apt.answers))
    if wrong:
        with pytest.raises(ClusterError, match=wrong):
            packages.ensure(packages.NODE)
    else:
        packages.ensure(packages.NODE)
    assert apt.calls == calls
    assert "installing conntrack" in capsys.readouterr().err.splitlines()[0]


def test_who_is_not_root_is_told_and_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    apt = Apt()
    monkeypatch.setattr(packages, "_run", apt)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(packages, "_distribution", lambda: {"ID": "debian"})
    monkeypatch.setattr(packages, "_find", lambda name: name != "conntrack")
    with pytest.raises(ClusterError, match=r"sudo apt-get install .* conntrack"):
        packages.ensure(packages.NODE)
    assert not apt.calls

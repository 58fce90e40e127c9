import dataclasses
from pathlib import Path

import pytest

from testbed import build, toolchain, versions
from testbed.versions import Program, program

_NAMES = {
    "the last folder": ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
    "not a major version": ("go.etcd.io/etcd/server/v3", "server"),
    "a major version in between": ("helm.sh/helm/v4/cmd/helm", "helm"),
    "a name that only begins with v": ("example.com/vault", "vault"),
    "a module of our own": (".", "spec"),
}


@pytest.mark.parametrize(("package", "wanted"), _NAMES.values(), ids=_NAMES)
def test_the_go_command_names_a_program_after_its_package(package: str, wanted: str) -> None:
    assert build.built_name(Program("spec", "1", Path(), package)) == wanted


@pytest.fixture
def spec(tmp_path: Path, own_cache: Path) -> Program:
    module = tmp_path / "module"
    module.mkdir()
    for name in ("go.mod", "go.sum", "main.go", "README.md"):
        (module / name).write_text(name)
    return Program("spec", "1.2.3", module, ".", (("main.version", "1.2.3"),))


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "main.go"])
def test_a_change_of_its_sources_is_another_program(name: str, spec: Program) -> None:
    before = build.path(spec)
    (spec.module / name).write_text("changed")
    assert build.path(spec) != before


def test_what_is_not_built_from_does_not_matter(spec: Program) -> None:
    before = build.path(spec)
    (spec.module / "README.md").write_text("changed")
    assert build.path(spec) == before


@pytest.mark.parametrize("change", [{"package": "./other"}, {"variables": (("main.version", "2"),)}, {"version": "2"}])
def test_a_change_of_what_is_built_is_another_program(change: dict[str, object], spec: Program) -> None:
    assert build.path(dataclasses.replace(spec, **change)) != build.path(spec)  # type: ignore[arg-type]


def test_a_path_says_the_name_and_the_version(spec: Program, own_cache: Path) -> None:
    path = build.path(spec)
    assert path.relative_to(own_cache / "bin").parts[0] == path.name == "spec"
    assert path.parent.name.startswith("1.2.3-")


def test_what_is_there_is_not_built(spec: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "go", lambda: pytest.fail("the toolchain was asked for"))
    build.path(spec).parent.mkdir(parents=True)
    build.path(spec).touch()
    assert build.build([spec]) == {"spec": build.path(spec)}


def test_nothing_of_the_users_go_settings_reaches_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    monkeypatch.setenv("GOOS", "plan9")
    monkeypatch.setenv("GOPROXY", "https://proxy")
    environment = build.environment()
    assert "GOOS" not in environment
    assert environment["GOFLAGS"].startswith("-mod=readonly")
    assert environment["GOPROXY"] == "https://proxy"  # how modules are reached is the machine's business


def test_a_program_for_another_platform_has_a_path_and_an_environment_of_its_own(spec: Program) -> None:
    arm = dataclasses.replace(spec, platform="linux/arm64")
    assert build.path(arm) != build.path(spec)
    environment = build.environment(arm.platform)
    assert (environment["GOOS"], environment["GOARCH"]) == ("linux", "arm64")


@pytest.mark.parametrize("version", versions.KUBERNETES)
def test_every_version_has_its_locked_module(version: str) -> None:
    kubelet = program("kubelet", version)
    assert {path.name for path in kubelet.sources} == {"go.mod", "go.sum"}
    assert dict(kubelet.variables)["k8s.io/component-base/version.gitVersion"] == f"v{version}"


@pytest.mark.parametrize(
    "name",
    ["etcd", "kwok", "helm", "kind", "metrics-server", "prometheus", "device-plugin", "cert-manager", "karpenter"],
)
def test_what_is_not_of_kubernetes_is_the_same_for_each_version(name: str) -> None:
    assert program(name, versions.KUBERNETES[0]) == program(name, versions.KUBERNETES[-1])


_GO = {
    "go version go1.26 linux/amd64": True,
    "go version go1.26.1 linux/arm64": True,
    "go version go1.30rc1 linux/amd64": True,
    "go version go2.0 linux/amd64": True,
    "go version go1.25.9 linux/amd64": False,
    "go version go1.9 linux/amd64": False,
    "go version devel +abcdef": False,
    "": False,
}


@pytest.mark.parametrize(("answer", "wanted"), _GO.items(), ids=_GO)
def test_go_is_new_enough_from_1_26_on(answer: str, wanted: bool) -> None:
    assert toolchain.is_new_enough(answer) is wanted

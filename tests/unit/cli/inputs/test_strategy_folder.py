"""The folder of custom strategies: what is found there, and what the author of a wrong file is told."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs import strategy_folder
from fairlead.cli.inputs.strategy_folder import VARIABLE, custom_strategies, strategy_files
from fairlead.cli.main import main
from support.policy.lint import HEAD, spec

STRATEGY = """\
from fairlead.api.params import Params
from fairlead.strategies.contract import PASS, Filter, Reads, Score, Strategy, Use

def one(params):
    return Filter(reads=Reads(), for_pod=lambda pod: lambda node, now, trace=None: PASS, reasons=())

STRATEGY = Strategy(name="{name}", filter=Use(Params, one))
"""
Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    def made(**files: str) -> Path:
        here = tmp_path / "strategies"
        here.mkdir(exist_ok=True)
        for name, text in files.items():
            (here / f"{name}.py").write_text(text)
        monkeypatch.setenv(VARIABLE, str(here))
        return here

    return made


def test_strategies_are_found_by_their_names_and_other_modules_are_passed_by(folder: Folder) -> None:
    here = folder(a=STRATEGY.format(name="zebra"), b=STRATEGY.format(name="ant"), c="X = 1")
    (here / ".#a.py").symlink_to("nobody@nowhere")
    (here / "notes.txt").write_text("x")
    (here / "d").mkdir()
    assert {name: one.name for name, one in custom_strategies().items()} == {"ant": "ant", "zebra": "zebra"}
    assert [file.name for file in strategy_files()] == ["a.py", "b.py", "c.py"]


def test_files_are_read_again_each_time_and_nothing_is_written(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    here = folder(a=STRATEGY.format(name="ant"))
    assert [*custom_strategies()] == ["ant"]
    folder(a=STRATEGY.format(name="bee"))
    assert [*custom_strategies()] == ["bee"]
    (here / "a.py").unlink()
    assert [*custom_strategies()] == []
    assert [*here.iterdir()] == []
    assert not sys.dont_write_bytecode


def test_a_file_may_import_another_one_whatever_it_is_called(folder: Folder) -> None:
    text = STRATEGY.format(name="ant").replace('"ant"', "NAME")
    folder(a=f"from .json import NAME\nimport json\njson.dumps\n{text}", json="NAME = 'ant'")
    assert [*custom_strategies()] == ["ant"]


def test_annotations_that_are_texts_are_resolved(folder: Folder) -> None:
    fields = "from __future__ import annotations\nclass Mine(Params):\n    other: Mine | None = None\n"
    text = STRATEGY.format(name="ant")
    folder(a=fields.partition("\n")[0] + "\n" + text.replace("def one", fields.partition("\n")[2] + "\ndef one"))
    assert [*custom_strategies()] == ["ant"]


def test_there_need_be_no_folder_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy_folder, "FOLDER", tmp_path / "strategies")
    monkeypatch.delenv(VARIABLE, raising=False)
    assert custom_strategies() == {}
    monkeypatch.setenv(VARIABLE, "")
    assert custom_strategies() == {}
    monkeypatch.setenv(VARIABLE, "nowhere")
    with pytest.raises(CommandError, match=r"^FAIRLEAD_STRATEGIES: nowhere is not a folder$"):
        custom_strategies()


def test_where_none_is_named_there_is_the_one_of_the_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Path("/opt/fairlead/strategies") == strategy_folder.FOLDER
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(strategy_folder, "FOLDER", tmp_path)
    (tmp_path / "a.py").write_text(STRATEGY.format(name="ant"))
    assert [*custom_strategies()] == ["ant"]


ANT = STRATEGY.format(name="ant")
WRONG: dict[str, tuple[dict[str, str], str]] = {
    "no Python": ({"a": "x = 1\nx y\n"}, "{a}: cannot be imported: line 2: SyntaxError: invalid syntax"),
    "not UTF-8": ({"a": "x = '\udcff'\n"}, "{a}: cannot be imported: line 1: SyntaxError: "),
    "raises": ({"a": "\n\n1 / 0\n"}, "{a}: cannot be imported: line 3: ZeroDivisionError: division by zero"),
    "lines": ({"a": "raise ValueError('a\\n  b')"}, "{a}: cannot be imported: line 1: ValueError: a b"),
    "exits": ({"a": "import sys\nsys.exit(3)"}, "{a}: cannot be imported: line 2: SystemExit: 3"),
    "imports what is not there": (
        {"a": "import nothing_of_that_name"},
        "{a}: cannot be imported: line 1: ModuleNotFoundError: No module named 'nothing_of_that_name'",
    ),
    "imports a wrong one": (
        {"a": "from .b import X", "b": "X = Y"},
        "{a}: cannot be imported: line 1: NameError: name 'Y' is not defined",
    ),
    "a name like a class": (
        {"a": ANT.replace('"ant"', '"Ant"')},
        "{a}: cannot be imported: line 7: ValueError: 'Ant' cannot be the name of a strategy: write it like nodeReadin",
    ),
    "a name that no policy can write": (
        {"a": ANT.replace('"ant"', f'"{"a" * 64}"')},
        "{a}: cannot be imported: line 7: ValueError: 'aaa",
    ),
    "a function for a use": (
        {"a": ANT.replace("Use(Params, one)", "one")},
        "{a}: cannot be imported: line 7: TypeError: filter and score of the strategy ant are of the class Use, not <f",
    ),
    "parameters of another kind": (
        {"a": ANT.replace("Use(Params,", "Use(dict,")},
        "{a}: cannot be imported: line 7: TypeError: the parameters of a strategy are a class of Params, not <class 'd",
    ),
    "no use": (
        {"a": ANT.replace(", filter=Use(Params, one)", "")},
        "{a}: cannot be imported: line 7: ValueError: the strategy ant neither filters nor scores",
    ),
    "no strategy": ({"a": "STRATEGY = 'ant'"}, "{a}: STRATEGY must be a Strategy; it is 'ant'"),
    "one name twice": (
        {"a": ANT, "b": ANT},
        "{b}: its strategy cannot be called ant, as the one of {a} is",
    ),
    "the name of a built-in one": (
        {"a": STRATEGY.format(name="nodeReadiness")},
        "{a}: its strategy cannot be called nodeReadiness, as a built-in one is",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_one_line_with_the_file(case: str, folder: Folder) -> None:
    files, want = WRONG[case]
    here = folder(good=STRATEGY.format(name="good"))
    for name, text in files.items():
        (here / f"{name}.py").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(CommandError) as refused:
        custom_strategies()
    said = str(refused.value)
    assert said.startswith(want.format(a=here / "a.py", b=here / "b.py"))
    assert "\n" not in said


def test_what_cannot_be_read_is_said(folder: Folder) -> None:
    here = folder()
    (here / "a.py").symlink_to("nothing")
    with pytest.raises(CommandError, match=r"a\.py: cannot be imported: .*Error: "):
        custom_strategies()


_TLS = ["--tls-cert=x", "--tls-key=x", "--client-ca=x"]
COMMANDS: dict[str, list[str]] = {
    "lint": ["p.yaml"],
    "test": ["p.test.yaml"],
    "render": ["p.yaml"],
    "simulate": ["--policies", "p.yaml", "--snapshot", "c.yaml", "--pods", "c.yaml"],
    "diff": ["--from", "p.yaml", "--to", "p.yaml", "--snapshot", "c.yaml", "--pods", "c.yaml"],
    "explain": ["pod/a", "--policies", "p.yaml", "--snapshot", "c.yaml"],
    "serve": ["--policies", ".", *_TLS],
    "operate": [],
}
CLUSTER = """\
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "8", pods: "9"}}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: default}
spec: {schedulerName: fairlead, containers: [{name: a}]}
"""
SUITE = "policies: [p.yaml]\nnodes: [{metadata: {name: n1}}]\ncases: [{name: a, pod: {}, expect: {passed: [n1]}}]\n"
POLICY = spec("filters: [{name: a, custom: {name: ant}}]")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"p.yaml": POLICY, "p.test.yaml": SUITE, "c.yaml": CLUSTER}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_compiles_policies_ends_with_one_line(
    command: str, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    here = folder(a="1 / 0")
    assert main([command, *COMMANDS[command]]) == 2
    printed = capsys.readouterr()
    want = f"{here / 'a.py'}: cannot be imported: line 1: ZeroDivisionError: division by zero"
    assert (printed.out, printed.err) == ("", f"fairlead {command}: {want}\n")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"serve", "operate"}))
def test_every_command_that_compiles_policies_knows_the_strategies(
    command: str, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(a=STRATEGY.format(name="ant"))
    assert main([command, *COMMANDS[command]]) == 0, capsys.readouterr().err
    folder(a=STRATEGY.format(name="bee"))
    assert main([command, *COMMANDS[command]]) != 0
    printed = capsys.readouterr()
    assert 'spec.filters[0].custom.name: this image has no strategy "ant"; it has bee' in printed.out + printed.err


@pytest.mark.usefixtures("here")
def test_lint_shows_where_parameters_are_wrong(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder(a=STRATEGY.format(name="ant"))
    text = HEAD + "spec:\n  filters:\n  - name: a\n    custom:\n      name: ant\n      params:\n        most: 1\n"
    Path("p.yaml").write_text(text)
    assert main(["lint", "p.yaml"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("p.yaml:10:9: error: spec.filters[0].custom.params.most: there is no such field")

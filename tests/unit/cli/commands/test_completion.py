"""What a shell is offered at Tab."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fairlead
from fairlead import __main__ as program
from fairlead.cli.commands.completion import FILES, NO_FILES, candidates
from fairlead.cli.main import main, parser

OFFERED: dict[str, tuple[list[str], list[str], int]] = {
    "a command": (["l"], ["lint"], NO_FILES),
    "a command that there is not": (["lynt", ""], [], NO_FILES),
    "options": (["render", "--k"], ["--kubernetes-version"], NO_FILES),
    "a file": (["lint", ""], [], FILES),
    "another file": (["lint", "a.yaml", ""], [], FILES),
    "a value out of some": (["lint", "-o", ""], ["table", "json", "yaml"], NO_FILES),
    "a value that has begun": (["lint", "--output", "j"], ["json"], NO_FILES),
    "what comes after a value": (["lint", "-o", "json", ""], [], FILES),
    "what comes after an equals sign and value": (
        ["lint", "--output=json", "-"],
        ["--help", "--filename", "--settings"],
        NO_FILES,
    ),
    "a file as a value": (["render", "--settings", ""], [], FILES),
    "a value of which nothing is known": (["render", "--kubernetes-version", ""], [], NO_FILES),
    "one of some": (["completion", "z"], ["zsh"], NO_FILES),
    "a file in kubectl's form": (["lint", "-f", ""], [], FILES),
    "a command to explain": (["help", "rend"], ["render"], NO_FILES),
    "nothing after the last": (["completion", "zsh", ""], [], NO_FILES),
    "options where there is nothing else": (["version", ""], ["--help", "--output"], NO_FILES),
    "a file that begins as an option does": (["lint", "--", "-"], [], FILES),
}


@pytest.mark.parametrize("case", OFFERED)
def test_what_is_offered(case: str) -> None:
    words, want, want_directive = OFFERED[case]
    found, directive = candidates(parser(), words)
    assert ([word for word, _ in found][: len(want)], bool(found), directive) == (want, bool(want), want_directive)


def test_every_command_is_offered_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["__complete", ""]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == ":4"
    assert "lint\tfind errors and surprises in policies before they are applied" in lines
    assert len(lines) == len(parser()._subparsers._group_actions[0].choices)  # type: ignore[union-attr,arg-type]


def test_kubectl_is_answered_in_its_own_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-fairlead", "lint", "-o", ""])
    with pytest.raises(SystemExit) as left:
        program.complete()
    assert left.value.code == 0
    assert capsys.readouterr().out == "table\njson\nyaml\ngithub\nsarif\n:4\n"


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("fairlead li", ["lint"]),
        ("fairlead lint -o ", ["table", "json", "yaml", "github", "sarif"]),
        ("fairlead lint a", []),
    ],
)
def test_bash_completes(line: str, want: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    words = line.split(" ")
    (tmp_path / "fairlead").write_text(f'#!/bin/sh\nexec {sys.executable} -m fairlead "$@"\n')
    (tmp_path / "fairlead").chmod(0o755)
    given = " ".join(f"'{word}'" for word in words)
    script = (
        f"{capsys.readouterr().out}\nCOMP_WORDS=({given}); COMP_CWORD={len(words) - 1}\n"
        '_fairlead; printf "%s\\n" "${COMPREPLY[@]}"; complete -p fairlead'
    )
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(fairlead.__file__).parents[1]),
    }
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    assert [one for one in done.stdout.splitlines() if one] == [*want, "complete -F _fairlead fairlead"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_asks_the_program_itself(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "fairlead __complete " in capsys.readouterr().out

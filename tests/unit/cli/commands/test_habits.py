"""Habits from kubectl, Helm and Python programs: what people type without thinking does what they expect."""

import argparse
import json
import os
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from fairlead import __version__
from fairlead.cli.console.options import repeated
from fairlead.cli.main import main, parser
from support.policy.lint import GOOD
from support.simulation.snapshot import listed, node, pod

NOTHING: Final = "kind: List\nitems: []\n"
CLUSTER: Final = str(Path(__file__).parents[4] / "examples" / "clusters" / "gpus.yaml")
POLICY: Final = str(Path(__file__).parents[4] / "examples" / "gpu-class.yaml")
FILES: Final = ("--snapshot", CLUSTER, "--policies", POLICY)
LATER: Final = """
apiVersion: v1
kind: Pod
metadata: {name: later, labels: {example.com/gpu: a100}}
spec:
  schedulerName: fairlead
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _ended(arguments: list[str]) -> int | str | None:
    """Return the exit code."""
    try:
        return main(arguments)
    except SystemExit as left:
        return left.code


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["version"]])
def test_the_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(arguments) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"], ["-h"]])
def test_the_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(arguments) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (parser().format_help(), "")
    assert "find errors and surprises in policies" in out


def test_the_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(["explain", "--help"]) == 0
    want = capsys.readouterr().out
    assert _ended(["help", "explain"]) == 0
    assert capsys.readouterr().out == want
    assert want.startswith("usage: fairlead explain ")


TYPOS: Final = {
    "a command": (["versoin"], "fairlead: there is no command 'versoin': did you mean version? See `fairlead --help`"),
    "a command like none": (["get"], "fairlead: there is no command 'get'; see `fairlead --help`"),
    "a command of help": (
        ["help", "simulat"],
        "fairlead help: there is no command 'simulat': did you mean simulate? See `fairlead help --help`",
    ),
    "an option": (
        ["status", "--contxt=a"],
        "fairlead status: unrecognized arguments: --contxt=a: did you mean --context? See `fairlead status --help`",
    ),
    "an option like none": (
        ["status", "--wide"],
        "fairlead status: unrecognized arguments: --wide; see `fairlead status --help`",
    ),
    "a value": (
        ["status", "-o", "jsn"],
        "fairlead status: argument -o/--output: there is no 'jsn': did you mean json? See `fairlead status --help`",
    ),
    "a value like none": (
        ["crd", "-o", "xml"],
        (
            "fairlead crd: argument -o/--output: there is no 'xml': "
            "there are yaml, json, jsonschema, jsonschema-suites; see `fairlead crd --help`"
        ),
    ),
}


@pytest.mark.parametrize("case", TYPOS)
def test_what_is_mistyped(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, want = TYPOS[case]
    assert _ended(arguments) == 2
    assert capsys.readouterr() == ("", f"{want}\n")


def test_files_in_the_form_of_kubectl(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.yaml").write_text(GOOD)
    (here / "b.yaml").write_text(GOOD.replace("name: some", "name: other"))
    assert main(["lint", "-f", "a.yaml"]) == 0
    assert capsys.readouterr().out.endswith("1 policy, 0 errors, 0 warnings, 0 notes\n")
    assert main(["lint", "--filename", "a.yaml", "-f", "b.yaml"]) == 0
    assert "2 policies" in capsys.readouterr().out
    assert main(["render", "-f", "a.yaml", "b.yaml"]) == 0
    assert "for 2 policies" in capsys.readouterr().out
    assert main(["lint", "a.yaml"]) == 0  # nothing of the calls before is left
    assert "1 policy" in capsys.readouterr().out
    assert main(["test", "-f", "none.test.yaml"]) == 2
    assert "none.test.yaml:1:1: error: cannot be read" in capsys.readouterr().err


def test_a_folder_without_policies_fails_on_request(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.yaml").write_text(NOTHING)
    assert main(["lint", "."]) == 0
    assert main(["lint", ".", "--require-policies"]) == 1
    assert capsys.readouterr().err.endswith("no SchedulerExtenderPolicy found in .\n")
    (here / "b.yaml").write_text(GOOD)
    assert main(["lint", ".", "--require-policies"]) == 0


@pytest.mark.parametrize(
    "asked",
    [
        ("pod/train",),
        ("train",),
        ("pod", "train"),
        ("po", "train", "-n", "demo"),
        ("-n", "demo", "pods", "train"),
        ("pods/train",),
    ],
)
def test_a_pod_in_each_form_of_kubectl(asked: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *asked, *FILES, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pod"]["name"] == "train"


@pytest.mark.parametrize("asked", [("node", "train"), ("pod", "train", "web"), ("pod", "pod/train"), ("pod", "")])
def test_what_is_no_pod(asked: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *asked, *FILES]) == 2
    assert (
        f"{' '.join(asked)!r} is neither a pod nor a workload: write pod/NAME, deploy/NAME, " in capsys.readouterr().err
    )


def test_no_pod_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert _ended(["explain", *FILES]) == 2
    assert "the following arguments are required: pod/NAME, or -f FILE, or --pending; see" in capsys.readouterr().err


def test_a_pod_that_does_not_exist_yet(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "later.yaml").write_text(LATER)
    assert main(["explain", "-f", "later.yaml", *FILES]) == 0
    out = capsys.readouterr().out
    assert out.startswith("pod default/later, scheduler fairlead, requests nvidia.com/gpu 1\n")
    assert "2 of 3 nodes are possible" in out
    assert main(["explain", "-f", "later.yaml", "-n", "ml", *FILES, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pod"]["namespace"] == "ml"
    assert main(["explain", "-f", "later.yaml", "pod", "later", "--node", "a100-small", *FILES, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["node"]["name"] == "a100-small"


WRONG_PODS: Final = {
    "another name": (LATER, ("latr",), "there is no pod latr in pods.yaml: did you mean later?"),
    "two pods": (
        f"{LATER}---{LATER.replace('later', 'then')}",
        (),
        "pods.yaml has the pods default/later, default/then: name one of them",
    ),
    "another namespace": (
        LATER.replace("{name: later,", "{name: later, namespace: ml,"),
        ("-n", "web"),
        "pods.yaml: the pod ml/later is not in the namespace web: leave out -n",
    ),
    "no pod": ("kind: Service\n", (), "pods.yaml has no pods to simulate, only 1 Service"),
    "no YAML": ("a: [", (), "pods.yaml: this is not YAML from line 2 on"),
}


@pytest.mark.parametrize("case", WRONG_PODS)
def test_a_file_that_is_not_one_pod(case: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, asked, want = WRONG_PODS[case]
    (here / "pods.yaml").write_text(text)
    assert main(["explain", "-f", "pods.yaml", *asked, *FILES]) == 2
    assert want in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        (["lint", "."], "fairlead: 2 files\n"),
        (["test", "."], "fairlead: 1 of 2 cases, "),
        (["simulate", "--pods", CLUSTER, *FILES], "fairlead: 1 of 2 pods, "),
        (["diff", "--from", POLICY, "--to", POLICY, "--pods", CLUSTER, *FILES[:2]], "fairlead: 1 of 2 pods, "),
    ],
)
def test_a_long_run_without_a_terminal_says_how_far_it_is(
    asked: list[str], want: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = count(0, 11)
    monkeypatch.setattr("fairlead.cli.console.output.time.monotonic", lambda: float(next(times)))
    case = "nodes: [{metadata: {name: a}}]\ncases: [{name: a, pod: {}, expect: {passed: [a]}}]\n"
    for name in "abc":
        (here / f"{name}.yaml").write_text(GOOD.replace("name: some", f"name: {name}"))
    for name in "ab":
        (here / f"{name}.test.yaml").write_text(f"policies: [{name}.yaml]\n{case}")
    assert main(asked) in (0, 1)
    assert want in capsys.readouterr().err


def test_each_option_that_takes_several_values_may_be_repeated() -> None:
    (commands,) = [one for one in parser()._actions if isinstance(one, argparse._SubParsersAction)]
    several = {
        f"{name} {option.option_strings[-1]}": option
        for name, command in commands.choices.items()
        for option in command._actions
        if option.option_strings and option.nargs == "+"
    }
    assert {"simulate --policies", "diff --from", "diff --to", "explain --snapshot"} <= {*several}
    assert [name for name, one in several.items() if not isinstance(one, argparse._ExtendAction)] == []
    assert [name for name, one in several.items() if one.default] == [], "values would be added to the default"


PLACE: Final = """
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata: {name: NAME}
spec:
  filters: [{name: it, expression: "node.metadata.name != 'NODE'", reason: not NODE}]
"""


@pytest.fixture
def halves(here: Path) -> Path:
    """Write two policies, two halves of a cluster and two files of pods."""
    for at, name in enumerate("ab"):
        Path(f"{name}.yaml").write_text(PLACE.replace("NAME", name).replace("NODE", f"n-{name}"))
        Path(f"none-{name}.yaml").write_text(PLACE.replace("NAME", name).replace("NODE", "none"))
        Path(f"c-{name}.json").write_text(json.dumps(listed(node(f"n-{name}"), pod(f"on-{at}", on=f"n-{name}"))))
        Path(f"q-{name}.json").write_text(json.dumps(listed(pod(f"q-{name}"))))
    return here


def _given(option: str, *names: str, repeated: bool) -> list[str]:
    return [word for one in names for word in (option, one)] if repeated else [option, *names]


@pytest.mark.parametrize("repeated", [False, True])
def test_files_in_one_option_or_in_several(halves: Path, capsys: pytest.CaptureFixture[str], *, repeated: bool) -> None:
    rest = [
        *_given("--snapshot", "c-a.json", "c-b.json", repeated=repeated),
        *_given("--pods", "q-a.json", "q-b.json", repeated=repeated),
        *("-o", "json"),
    ]
    assert main(["simulate", *_given("--policies", "a.yaml", "b.yaml", repeated=repeated), *rest]) == 0
    pods = json.loads(capsys.readouterr().out)["pods"]
    assert [(one["name"], one["policies"]) for one in pods] == [("q-a", ["a", "b"]), ("q-b", ["a", "b"])]
    assert [each["reasons"] for each in pods[0]["nodes"]] == [["not n-a"], ["not n-b"]]
    before = _given("--from", "a.yaml", "b.yaml", repeated=repeated)
    after = _given("--to", "none-a.yaml", "none-b.yaml", repeated=repeated)
    assert main(["diff", *before, *after, *rest]) == 1
    changed = json.loads(capsys.readouterr().out)["pods"]
    assert [[each["node"] for each in one["gained"]] for one in changed] == [["n-a", "n-b"], ["n-a", "n-b"]]


def test_a_hint_repeats_options_that_were_repeated() -> None:
    asked = ["--policies", "a.yaml", "--policies", "b.yaml", "--data", "v.json", "--data", "w.json"]
    given = parser().parse_args(["explain", "pod/a", *asked, "--snapshot", "c.json", "--snapshot", "d.json"])
    assert repeated(given) == "--policies a.yaml b.yaml --snapshot c.json d.json --data v.json --data w.json"
    assert repeated(parser().parse_args(["explain", "pod/a", "--snapshot", "live"])) == ""


@pytest.mark.parametrize(("more", "fault"), [(["a.yaml"], "give either files or live"), (["live"], "no.config: ")])
def test_live_and_files_in_a_repeated_option(
    halves: Path, capsys: pytest.CaptureFixture[str], more: list[str], fault: str
) -> None:
    asked = ["simulate", "--policies", "live", "--kubeconfig", "no.config"]
    assert main([*asked, *_given("--policies", *more, repeated=True)]) == 2
    assert fault in capsys.readouterr().err


def test_values_of_several_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = "  data: [{name: load, prometheus: {query: up}, maxAge: 5m}]\nspec:\n"
    Path("p.yaml").write_text(
        PLACE.replace("NAME", "p")
        .replace("spec:\n", f"spec:\n{data}".removesuffix("spec:\n"))
        .replace("node.metadata.name != 'NODE'", "data.load < 0.5")
    )
    Path("c.json").write_text(json.dumps(listed(node("n1"), node("n2"), pod("a"))))
    for name, value in ("n1", 0.1), ("n2", 0.9):
        Path(f"{name}.json").write_text(json.dumps({"p": {"load": {"values": {name: value}}}}))
    asked = ["simulate", "--policies", "p.yaml", "--snapshot", "c.json", "-o", "json"]
    assert main([*asked, "--data", "n1.json", "--data", "n2.json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["pods"]
    assert [each["passed"] for each in found["nodes"]] == [True, False]


def test_explain_takes_one_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("later.yaml").write_text(LATER)
    assert _ended(["explain", "-f", "later.yaml", "-f", "later.yaml", *FILES]) == 2
    assert "give one file, explain is for one pod" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["policies", "snapshot", "data", "learned"])
@pytest.mark.parametrize("name", ["-", "pipe"])
def test_the_page_takes_no_file_that_can_be_read_only_once(
    option: str, name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It reads its files each time it is opened."""
    os.mkfifo(here / "pipe")
    given = [] if option in ("policies", "snapshot") else [*FILES]
    assert main(["ui", "--no-browser", *given, f"--{option}", name]) == 2
    said = f"--{option} {name}: each opening of the page reads it again: write it to a file"
    assert capsys.readouterr().err == f"fairlead ui: {said}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lint", "-"], "-:1:1: error: cannot be read: standard input is closed"),
        (["test", "-"], "-:1:1: error: cannot be read: standard input is closed"),
        (["simulate", "--policies", POLICY, "--snapshot", "-"], "-: cannot be read: standard input is closed"),
    ],
)
def test_a_closed_standard_input_is_no_bug(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert said in printed.out + printed.err

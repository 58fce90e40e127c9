"""What an edited policy would do, as lines of text."""

from pathlib import Path
from typing import Final

import pytest
import yaml

from fairlead.cli.main import main
from fairlead.cli.ui.page_view import page_view
from fairlead.cli.ui.what_if import LINES_MAX, Line, compare, lint_text
from support.cli.page import Object, node, page_of, pod, policy, read, write
from support.cli.status_api import api_server, items
from support.kube.crd import POLICIES

CLASS: Final = ("node.metadata.labels[?'gpu'].orValue('') == pod.metadata.labels[?'gpu'].orValue('')", "wrong class")
OBJECTS: Final = [
    node("a", labels={"gpu": "a100"}),
    node("b", labels={"gpu": "h100"}),
    pod("new", gpu="b300"),
    pod("old", gpu="a100"),
    pod("runs", on="b", gpu="h100"),
]
POLICY: Final = policy("class", CLASS)


def _lines(folder: Path, edited: Object, before: Object = POLICY) -> list[tuple[str, str]]:
    _, shown = page_of(folder, OBJECTS, [before])
    policies = lint_text(yaml.safe_dump(edited).encode(), {}).policies
    assert policies is not None
    return [(line.kind, line.text) for line in compare(shown, policies)]


NOT_KNOWN: Final = "it is not known what it would change for 2 pods."
NOT_GIVEN: Final = "which is not known: give it with --prometheus default=URL or --data FILE."
EDITS: dict[str, tuple[Object, list[tuple[str, str]]]] = {
    "the same": (POLICY, [("Head", "Nothing changes for any of 3 pods.")]),
    "stricter": (
        policy("class", CLASS, ("node.metadata.name != 'a'", "not a")),
        [
            ("Head", "ml/old"),
            ("Worse", "    has no node left"),
            ("Worse", "    loses a: not a (class/f1)"),
            ("Plain", ""),
            ("Head", "1 of 3 pods changes, 1 of them has no node left."),
        ],
    ),
    "looser": (
        policy("class", (f"{CLASS[0]} || pod.metadata.labels[?'gpu'].orValue('') == 'b300'", CLASS[1])),
        [
            ("Head", "ml/new"),
            ("Better", "    had no node and now has one"),
            ("Better", "    gains a, b: no longer wrong class (class/f0)"),
            ("Plain", ""),
            ("Head", "1 of 3 pods changes."),
        ],
    ),
    "a placed pod is looked at as if it had no node": (
        policy("class", CLASS, ("node.metadata.name != 'b'", "not b")),
        [
            ("Head", "ml/runs"),
            ("Worse", "    has no node left"),
            ("Worse", "    loses b: not b (class/f1)"),
            ("Plain", ""),
            ("Head", "1 of 3 pods changes, 1 of them has no node left."),
        ],
    ),
    "another name adds a policy": (
        policy("more", ("node.metadata.name != 'a'", "not a")),
        [
            ("Plain", "more is a new policy"),
            ("Head", "ml/old"),
            ("Worse", "    has no node left"),
            ("Worse", "    loses a: not a (more/f0)"),
            ("Plain", ""),
            ("Head", "1 of 3 pods changes, 1 of them has no node left."),
        ],
    ),
    "what is in shadow decides nothing": (
        policy("more", ("node.metadata.name != 'a'", "not a"), mode="Shadow"),
        [
            ("Plain", "more is a new policy"),
            ("Plain", "more: its rules in shadow decide nothing"),
            ("Head", "Nothing changes for any of 3 pods."),
            ("Head", "In shadow: more/f0. If enforced, 1 pod would be left without a node."),
        ],
    ),
    "what is in shadow is not evaluated": (
        policy("more", ("data.x < 0.5", "busy"), mode="Shadow", data=[{"name": "x", "prometheus": {"query": "x"}}]),
        [
            ("Plain", "more is a new policy"),
            ("Plain", "more: its rules in shadow decide nothing"),
            ("Head", "Nothing changes for any of 3 pods."),
            (
                "Head",
                f"In shadow: more/f0. If enforced, that would change nothing for 1 pod, and {NOT_KNOWN}",
            ),
            ("Plain", f"Note: in shadow, not evaluated: more/f0: it reads data.x, {NOT_GIVEN}"),
        ],
    ),
    "a scheduler that no policy names": (
        policy("other", ("false", "never"), schedulerName="other"),
        [
            ("Plain", "other is a new policy"),
            ("Head", "Nothing changes for any of 3 pods."),
            ("Plain", "Note: pods of other, which no policy names yet, are not compared here."),
        ],
    ),
}


@pytest.mark.parametrize(("edited", "wanted"), EDITS.values(), ids=EDITS)
def test_the_difference(edited: Object, wanted: list[tuple[str, str]], tmp_path: Path) -> None:
    found = _lines(tmp_path, edited)
    assert [line for line in found if not line[1].startswith("Not simulated")] == wanted


TO_SHADOW: Final = policy("class", CLASS, mode="Shadow")


@pytest.mark.parametrize("edited", [*[edit for edit, _ in EDITS.values()][1:4], TO_SHADOW])
def test_the_page_and_the_command_say_the_same(
    edited: Object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [text for _, text in _lines(tmp_path, edited) if not text.endswith("decide nothing")]
    options = write(tmp_path, OBJECTS, [POLICY])
    (tmp_path / "edited.yaml").write_text(yaml.safe_dump(edited))
    before = options.index("--policies") + 1
    main(["diff", "--from", options[before], "--to", str(tmp_path / "edited.yaml"), *options[:2]])
    assert capsys.readouterr().out.splitlines() == found


def test_with_published_affinity_pods_are_compared_as_they_would_be_created(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the edit nothing is published; a pod that runs would get the affinity that the edit publishes."""
    before = policy("class", CLASS, publish="NodeAffinity")
    other = ("node.metadata.labels[?'gpu'].orValue('') == 'a100'", "not a100")
    edited = policy("class", other, publish="NodeAffinity")
    found = [text for _, text in _lines(tmp_path, edited, before)]
    options = write(tmp_path, OBJECTS, [before])
    (tmp_path / "edited.yaml").write_text(yaml.safe_dump(edited))
    main(["diff", "--from", options[3], "--to", str(tmp_path / "edited.yaml"), *options[:2]])
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if not line.startswith("Note:")] == found
    assert any("gains a: no longer" in line for line in found)


@pytest.mark.parametrize("mode", ["Enforce", "Shadow"])
def test_a_policy_of_which_another_generation_serves_stays_unknown_before_and_after(mode: str, tmp_path: Path) -> None:
    """Replicas serve a generation that only they know: an edit of another policy changes nothing there."""
    refused = {
        **policy("behind", ("true", "never"), mode=mode),
        "metadata": {"name": "behind", "uid": "u", "generation": 3},
        "status": {"servingGeneration": 2, "observedGeneration": 3},
    }
    edited = policy("class", (CLASS[0], "another reason"))
    answers = {
        "/version": {},
        "/api/v1/nodes": items(*(one for one in OBJECTS if one["kind"] == "Node")),
        "/api/v1/pods": items(*(one for one in OBJECTS if one["kind"] == "Pod")),
        "/api/v1/namespaces": items({"metadata": {"name": "ml"}}),
        "/api/v1/configmaps": items(),
        POLICIES: items(POLICY, refused),
    }
    with api_server(answers, tmp_path) as kubeconfig:
        _, shown = page_view(read(["--kubeconfig", str(kubeconfig)]))
    policies = lint_text(yaml.safe_dump(edited).encode(), {}).policies
    assert policies is not None
    text = [line.text for line in compare(shown, policies)]
    assert "Nothing changes for any of 3 pods." in text
    assert any("behind as a whole: replicas serve generation 2, which is not known here" in line for line in text)


LINTED: dict[str, tuple[bytes, bool, str, str]] = {
    "no YAML": (b"a: [", False, "Error", "policy.yaml:1:"),
    "nothing": (b"", False, "Error", "there is no policy in this text"),
    "another kind": (b"kind: Pod\napiVersion: v1", False, "Error", "there is no policy in this text"),
    "a typo": (
        yaml.safe_dump(policy("p", ("node.metadta.name != ''", "why"))).encode(),
        False,
        "Error",
        "spec.filters[0].expression",
    ),
    "fine": (yaml.safe_dump(POLICY).encode(), True, "Plain", "note"),
    "control characters": (b"a: \x1b[2J", False, "Error", "policy.yaml:1:4"),
    "not UTF-8": (b"a: \xff", False, "Error", "this is not UTF-8 text: byte 0xff"),
}


@pytest.mark.parametrize(("text", "compiles", "kind", "said"), LINTED.values(), ids=LINTED)
def test_lint(text: bytes, compiles: bool, kind: str, said: str) -> None:
    linted = lint_text(text, {})
    assert (linted.policies is not None) == compiles
    assert any(line.kind == kind and said in line.text for line in linted.lines), linted.lines


def test_a_long_answer_is_cut_in_the_middle(tmp_path: Path) -> None:
    pods = [pod(f"p-{at}", gpu="a100", other=str(at)) for at in range(LINES_MAX)]
    _, shown = page_of(tmp_path, [*OBJECTS, *pods], [POLICY])
    policies = lint_text(yaml.safe_dump(policy("class", ("false", "never"))).encode(), {}).policies
    assert policies is not None
    lines = compare(shown, policies)
    assert len(lines) == LINES_MAX + 1
    assert Line("Plain", "") in lines
    assert any("more lines, which `fairlead diff` prints" in line.text for line in lines)

"""The demo ends with an error when what it shows is not what it promised."""

import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from rich.console import Console

from demo import cli, ending, story
from demo.ground import CHECKOUT, Ground
from demo.nodes import nodes, row
from demo.pods import NAMESPACES, Pod, Pods
from demo.screen import BrokenPromiseError, Screen
from fairlead.webhook.measured_data.usable_nodes import UsableNodes, namespaces_of
from support.policy import NOW, policy
from support.policy import node as view
from support.policy.building import ns
from testbed.errors import ClusterError

DENIED = "admission denied it: spec.filters[0].expression: ObjectMeta has no field `lables`; did you mean `labels`?"


def screen(*, terminal: bool = False) -> tuple[Screen, io.StringIO]:
    written = io.StringIO()
    return Screen(Console(file=written, width=100, force_terminal=terminal, highlight=False)), written


def pods(**answers: Any) -> Pods:
    def no(*_: object) -> None:
        pass

    return cast(
        "Pods", SimpleNamespace(make=no, clear=no, **{name: lambda _, to=to: to for name, to in answers.items()})
    )


def placed(train: str, gpu_class: str = "a100") -> Pods:
    made = pods(annotations={"fairlead.dev/gpu-class": gpu_class})
    made_for = {"train": train, "web": "red-1"}
    return cast("Pods", SimpleNamespace(**vars(made), placed=lambda pod: made_for[pod.name]))


def kubectl(answer: str) -> Ground:
    def call(*arguments: str, stdin: str = "") -> str:
        if answer:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {answer}")
        return ""

    return cast("Ground", SimpleNamespace(kubectl=call))


def explains(answer: str) -> Ground:
    return cast("Ground", SimpleNamespace(fairlead=lambda *_: answer))


WRONG = "0/7 nodes are available: 5 wrong class of GPU"
SCENES: dict[str, tuple[Callable[[Screen], object], bool]] = {
    "pods where they should be": (lambda it: story._placed(placed("a100-small"), it), True),
    "a pod elsewhere": (lambda it: story._placed(placed("a100-large"), it), False),
    "an annotation that is not the class": (lambda it: story._placed(placed("a100-small", "none"), it), False),
    "rejected by the rule": (
        lambda it: story._rejected(explains("and 'b200'"), pods(rejection=WRONG), it),
        True,
    ),
    "rejected by something else": (lambda it: story._rejected(explains("'b200'"), pods(rejection="0/7"), it), False),
    "rejected and not explained": (lambda it: story._rejected(explains(""), pods(rejection=WRONG), it), False),
    "a mistake that is denied": (lambda it: story._mistaken(kubectl(DENIED), it), True),
    "a mistake that is taken": (lambda it: story._mistaken(kubectl(""), it), False),
    "a mistake that fails otherwise": (lambda it: story._mistaken(kubectl("connection refused"), it), False),
}


@pytest.mark.parametrize(("scene", "kept"), SCENES.values(), ids=SCENES)
def test_a_promise_is_checked(scene: Callable[[Screen], object], *, kept: bool) -> None:
    shown, written = screen()
    if kept:
        scene(shown)
        assert "  ✓ " in written.getvalue()
    else:
        with pytest.raises(BrokenPromiseError):
            scene(shown)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            BrokenPromiseError("train is on a100-small; found: red-1"),
            1,
            "claim does not hold: train is on a100-small",
        ),
        (ClusterError("nothing answers", cure="look"), 1, "next: look"),
        (KeyboardInterrupt(), 130, "make demo-down"),
    ],
)
def test_how_it_ends(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def show(*_: object) -> None:
        raise error

    monkeypatch.setattr("demo.story.show", show)
    monkeypatch.setattr("testbed.providers.choose", lambda *_: SimpleNamespace(cluster="demo"))
    monkeypatch.setattr("demo.ground.folder_of", lambda _: None)
    assert cli.main([]) == code
    assert said in " ".join(capsys.readouterr().out.split())


def test_what_is_waited_for_is_said_with_and_without_a_terminal() -> None:
    for terminal in (False, True):
        shown, written = screen(terminal=terminal)
        with shown.waiting("a [node] to come") as hear:
            before = written.getvalue()
            hear("it is [on] its way")
            hear("it is [on] its way")
        assert "a [node] to come" in written.getvalue()
        assert terminal or "waiting: a [node] to come" in before
        assert terminal or written.getvalue().count("it is [on] its way") == 1


def test_the_nodes_are_what_the_story_says() -> None:
    assert [row(node) for node in nodes()][:2] == [
        ("a100-small", "a100", "2", "any"),
        ("a100-large", "a100", "8", "any"),
    ]
    assert {node["metadata"]["labels"]["kubernetes.io/hostname"] for node in nodes()} == {
        node["metadata"]["name"] for node in nodes()
    }


def test_the_pod_to_go_on_with_is_like_those_of_the_story() -> None:
    pod = yaml.safe_load(ending.POD.read_text())
    like = Pod("like", gpu="b200").manifest()
    assert pod["spec"] == like["spec"]
    assert pod["metadata"]["labels"] == like["metadata"]["labels"]
    assert pod["metadata"]["namespace"] in NAMESPACES


def test_nodes_that_pods_of_red_may_not_use_need_no_load() -> None:
    files = [CHECKOUT / "demo" / "cool.yaml", CHECKOUT / "examples" / "tenant-nodes.yaml"]
    cool, tenants = (policy(file.stem, **yaml.safe_load(file.read_text())["spec"]) for file in files)
    known = {name: ns(name, {**labels, "kubernetes.io/metadata.name": name}) for name, labels in NAMESPACES.items()}
    usable = UsableNodes(cool, [cool, tenants], namespaces_of(cool, known))
    views = [view(one["metadata"]["name"], labels=one["metadata"]["labels"]) for one in nodes()]
    assert [one.name for one in views if usable(one, NOW)] == ["red-1", "red-2"]

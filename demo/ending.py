"""How to go on by hand, and how to take it down."""

import sys
from pathlib import Path
from typing import Final

from demo.screen import Screen

POD: Final = Path(__file__).with_name("pod.yaml")
"""One more of those that wait for a b200."""


def commands() -> tuple[str, ...]:
    """Three to try."""
    return (
        "kubectl get sep",
        "kubectl get pods --all-namespaces --output wide --selector example.com/gpu",
        "fairlead explain pod/next-model --namespace demo",
    )


def more() -> tuple[str, ...]:
    """An edit of a rule, and a pod to see what it does."""
    return "kubectl edit sep gpu-class", f"kubectl create -f {_from_here(POD)}"


def environment(cluster: str) -> str:
    """What a shell needs: KUBECONFIG, and kubectl, helm and fairlead in its PATH."""
    return f'eval "$({_from_here(Path(sys.executable))} -m testbed --name {cluster} env)"'


def tell(cluster: str, screen: Screen) -> None:
    """The last words."""
    screen.tell("The cluster stays up. To go on by hand, in this folder:")
    for command in (environment(cluster), *commands()):
        screen.command(command)
    screen.tell("Then edit a rule, and see where another pod goes that asks for a GPU of class b200:")
    for command in more():
        screen.command(command)
    screen.tell("docs/guide/first-policy.md goes on from here with a policy of your own. To take the cluster down:")
    screen.command("make demo-down")


def _from_here(path: Path) -> Path:
    """As it is called from here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path

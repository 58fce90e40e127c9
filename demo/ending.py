"""Commands to try after the demo, and how to delete its cluster."""

import sys
from pathlib import Path
from typing import Final

from demo.screen import Screen

DEFAULT_NAME: Final = "demo"
POD: Final = Path(__file__).with_name("pod.yaml")
"""Another pod that requests a GPU of class b200."""


def commands() -> tuple[str, ...]:
    """Return commands to try."""
    return (
        "kubectl get sep",
        "kubectl get pods --all-namespaces --output wide --selector example.com/gpu",
        "fairlead explain pod/next-model --namespace demo",
    )


def page() -> str:
    """Return the command that shows the cluster on a page, until Ctrl-C."""
    return "fairlead ui"


def more() -> tuple[str, ...]:
    """Return commands that edit a rule and create a pod to see the effect."""
    return "kubectl edit sep gpu-class", f"kubectl create -f {_from_here(POD)}"


def delete(cluster: str) -> str:
    """Return the command that deletes the demo's cluster."""
    if cluster == DEFAULT_NAME:
        return "make demo-down"
    return f"{_from_here(Path(sys.executable))} -m demo --name {cluster} down"


def show(cluster: str) -> str:
    """Return the command that continues the demo."""
    if cluster == DEFAULT_NAME:
        return "make demo"
    return f"{_from_here(Path(sys.executable))} -m demo --name {cluster}"


def environment(cluster: str) -> str:
    """Return a command that sets KUBECONFIG, and adds kubectl, helm and fairlead to PATH."""
    return f'eval "$({_from_here(Path(sys.executable))} -m testbed --name {cluster} env)"'


def tell(cluster: str, screen: Screen) -> None:
    """Show what to do next."""
    screen.tell("The cluster keeps running. To try it yourself, run in this folder:")
    for command in (environment(cluster), *commands()):
        screen.command(command)
    screen.tell("To see all of it on a page, and what an edit would change:")
    screen.command(page())
    screen.tell("Then edit a rule, and see where another pod that requests a GPU of class b200 is placed:")
    for command in more():
        screen.command(command)
    screen.tell("Continue with docs/guide/first-policy.md to write your own policy. To delete the cluster:")
    screen.command(delete(cluster))


def _from_here(path: Path) -> Path:
    """Return the path relative to the working directory if it is inside."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path

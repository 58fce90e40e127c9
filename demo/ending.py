"""How to go on by hand, and how to take it down."""

import sys
from pathlib import Path

from demo.screen import Screen


def commands() -> tuple[str, ...]:
    """Three to try."""
    return (
        "kubectl get sep",
        "kubectl get pods --all-namespaces --output wide --selector example.com/gpu",
        f"{_beside('fairlead')} explain pod/next-model --namespace demo",
    )


def environment(cluster: str) -> str:
    """What a shell needs: KUBECONFIG, and kubectl and helm in its PATH."""
    return f'eval "$({_beside(Path(sys.executable).name)} -m testbed --name {cluster} env)"'


def tell(cluster: str, screen: Screen) -> None:
    """The last words."""
    screen.tell("The cluster stays up. To go on by hand, in this folder:")
    for command in (environment(cluster), *commands()):
        screen.command(command)
    screen.tell("Then edit a rule (kubectl edit sep gpu-class) and see where the next pod goes. To take it down:")
    screen.command("make demo-down")


def _beside(program: str) -> Path:
    """A program of this interpreter's folder, as it is called from here."""
    found = Path(sys.executable).with_name(program)
    return found.relative_to(Path.cwd()) if found.is_relative_to(Path.cwd()) else found

"""How to go on by hand, and how to take it down."""

import sys
from pathlib import Path

from demo.screen import Screen

COMMANDS = (
    "kubectl get sep",
    "kubectl get pods -A -o wide -l example.com/gpu",
    "kubectl -n demo get events --field-selector reason=FailedScheduling",
)


def environment(cluster: str) -> str:
    """What a shell needs: KUBECONFIG, and kubectl and helm in its PATH."""
    python = Path(sys.executable)
    near = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
    return f'eval "$({near} -m testbed --name {cluster} env)"'


def tell(cluster: str, screen: Screen) -> None:
    """The last words."""
    screen.tell("The cluster stays up. To go on by hand, in this folder:")
    screen.command(environment(cluster))
    for command in COMMANDS:
        screen.command(command)
    screen.tell("Then edit a rule (kubectl edit sep gpu-class) and see where the next pod goes. To take it down:")
    screen.command("make demo-down")

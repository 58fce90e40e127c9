"""Sees to it that a component runs and is ready, and says what is wrong when it does not."""

import ssl
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed import process
from testbed.errors import ClusterError
from testbed.phases import say
from testbed.process import Component

_POLL_S = 0.05
_GRACE_S = 10.0
_LOOKS = 5  # a process that is just becoming another program has no environment for a moment, and so no mark


class Supervisor:
    """Starts and restarts the components of one cluster."""

    def __init__(self, cluster: Path, enter: Callable[[], Sequence[str]]) -> None:
        """`enter` gives the command that enters the components' namespaces; an empty one where they have none."""
        self.cluster = cluster
        self._enter = enter

    def ensure(self, component: Component, is_ready: Callable[[], bool], *, within_s: float = 30) -> None:
        """See that a component runs and is ready; one that runs but does not answer is started again."""
        name = component.name
        found = process.find(self.cluster, name)
        if found and process.state(found) == "stopped":
            say(f"{name} is stopped: starting it again")
            process.kill([found])
        elif found:
            try:
                self.wait(name, is_ready, within_s=_GRACE_S)
            except ClusterError:
                say(f"{name} runs but is not ready: starting it again")
                process.kill(found for found in [process.find(self.cluster, name)] if found)
            else:
                return
        process.start(self.cluster, component, enter=self._enter())
        self.wait(name, is_ready, within_s=within_s)

    def wait(self, name: str, is_ready: Callable[[], bool], *, within_s: float) -> None:
        """Wait until a component is ready. It may end before it is; then there is nothing to wait for."""
        end = time.monotonic() + within_s
        log = process.log_of(self.cluster, name)
        wrong = ""
        gone = 0
        while True:
            try:
                if is_ready() and process.find(self.cluster, name):
                    return
            except ClusterError as error:
                wrong = f": {error.what}"
            gone = gone + 1 if process.is_gone(self.cluster, name) else 0
            if gone > _LOOKS:
                raise ClusterError(f"{name} ended", log=log, cure="mend what its log says and call `up` again")
            if time.monotonic() > end:
                raise ClusterError(
                    f"{name} was not ready within {within_s:g} s{wrong}",
                    log=log,
                    cure="call `up` again, which goes on from here, or `down` to begin anew",
                )
            time.sleep(_POLL_S)


def answers(host: str, port: int, page: str = "/healthz") -> bool:
    """Tell whether a component serves its health page; its certificate is of its own making."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    # the user's proxy knows nothing of addresses on this machine
    handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    try:
        with urllib.request.build_opener(*handlers).open(f"https://{host}:{port}{page}", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False

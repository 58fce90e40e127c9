"""How a command ends that cannot do its work: one line that says what to do, and an exit code."""

from collections.abc import Callable
from typing import Final

from fairlead.cli import exits
from fairlead.cli.printing import complain

REACH: Final = "see that the cluster is up, and that --kubeconfig and --context name the one you mean"


class CommandError(Exception):
    """Says in one line what is wrong and what to do."""

    def __init__(self, message: str, code: int = exits.NOT_ASKED) -> None:
        super().__init__(message)
        self.code = code


def told(command: str, work: Callable[[], int]) -> int:
    """The exit code of some work; where it cannot be done, that is said."""
    from fairlead.cluster.errors import ClusterError, UnreachableError
    from fairlead.offline.snapshot import SnapshotError

    try:
        return work()
    except CommandError as error:
        complain(command, str(error))
        return error.code
    except UnreachableError as error:
        complain(command, f"{error}; {REACH}")
        return exits.NOT_ASKED
    except (ClusterError, SnapshotError) as error:
        complain(command, str(error))
        return exits.NOT_ASKED

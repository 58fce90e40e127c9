"""Access to the cluster of the options: it answers before the code that reads and judges it is loaded.

That code takes longer to load than all else, and is not needed if there is no cluster.
"""

import argparse
import asyncio
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from fairlead.cli.console.exits import CommandError
from fairlead.kube.access.login import Login, log_in
from fairlead.kube.errors import ForbiddenError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import VERSION

REACHED_S: Final = 3.0
WITHIN_S: Final = 30.0
_LIVE: Final = "live"


@dataclass(frozen=True, slots=True)
class PolicyOption:
    """Policies that an option names: files, or `live` for those of the cluster, or nothing for the same."""

    option: str
    names: Sequence[str]
    applied: bool = False
    """True if the files are applied to the cluster, so that its other policies stay."""
    as_enforced: bool = False
    """True if all that is in shadow is taken as enforced."""
    enforced: Collection[str] = ()
    """Names of policies of which it is."""

    @property
    def is_live(self) -> bool:
        """Return whether policies of the cluster are among them."""
        return not self.names or self.applied or is_live(self.option, self.names)

    def is_enforced(self, policy: str) -> bool:
        """Return whether what is in shadow of a policy is taken as enforced."""
        return self.as_enforced or policy in self.enforced


@dataclass(slots=True)
class ClusterAccess:
    """The cluster of the options, with one client, opened when something of it is read first. A context manager."""

    options: argparse.Namespace
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _login: Login | None = None
    _has_answered: bool = False
    _client: Client | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def login(self) -> Login:
        """Login of the cluster and the user that the kubeconfig names. Raises ClusterError."""
        if self._login is None:
            self._login = log_in(self.options.kubeconfig, self.options.context, use_proxy=True)
        return self._login

    async def reach(self) -> None:
        """Check once, with a short deadline, that the API server answers. Raises ClusterError."""
        if self._has_answered:
            return
        async with Client(self.login, deadline_s=REACHED_S) as client:
            await check_answer(client)
        self._has_answered = True

    async def client(self) -> Client:
        """Return the client of a cluster that answers. Raises ClusterError."""
        if self._client is None:
            await self.reach()
            self._client = await self._stack.enter_async_context(Client(self.login, deadline_s=WITHIN_S))
        return self._client


async def check_answer(client: Client) -> None:
    """Check that the API server answers; a missing permission is an answer too. Raises ClusterError."""
    with suppress(ForbiddenError):
        await client.get(VERSION, bytes)


def cluster_access(arguments: argparse.Namespace, options: Sequence[PolicyOption]) -> ClusterAccess:
    """Return the access to the cluster, which answers if the options name it. Raises CommandError and ClusterError."""
    access = ClusterAccess(arguments)
    if any(live_parts(arguments, options)):
        asyncio.run(access.reach())
    return access


def live_parts(arguments: argparse.Namespace, options: Sequence[PolicyOption]) -> tuple[bool, bool]:
    """Return whether the objects, and whether policies, are those of the cluster. Raises CommandError."""
    objects, policies = objects_are_live(arguments), any(one.is_live for one in options)
    if not objects and any(not one.names for one in options):
        raise CommandError("--snapshot files hold no policies: also give --policies FILE, or --policies live")
    return objects, policies


def objects_are_live(arguments: argparse.Namespace) -> bool:
    """Return whether the objects are those of the cluster, as without --snapshot. Raises CommandError."""
    return not arguments.snapshot or is_live("--snapshot", arguments.snapshot)


def is_live(option: str, names: Sequence[str]) -> bool:
    """Return whether an option names the cluster instead of files. Raises CommandError if it names both."""
    if _LIVE not in names:
        return False
    if {*names} != {_LIVE}:
        raise CommandError(f"{option} {' '.join(names)}: give either files or {_LIVE}")
    return True

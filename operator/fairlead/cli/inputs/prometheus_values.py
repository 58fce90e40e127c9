"""Measured values of `--prometheus NAME=URL`, asked with the caller's own rights."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from fairlead.api.errors import InvalidObjectError
from fairlead.api.parse import parse_params
from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.data_file import MeasuredInput
from fairlead.kube.access.secret_files import FileSecret
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import PollError, PrometheusPoll, poll_of
from fairlead.render.prometheus_settings import PrometheusServer
from fairlead.webhook.data_sources.node_names import NodeNames
from fairlead.webhook.data_sources.prometheus_client import PrometheusClient
from fairlead.webhook.data_sources.server_access import ServerAccess

_OPTION: Final = "--prometheus"
_TOKEN: Final = "--prometheus-token"  # noqa: S105 - an option, no token
_LOOKBACK_S: Final = 300


def servers_of(written: Sequence[str]) -> list[PrometheusServer]:
    """Return the servers that `--prometheus` names. Raises CommandError."""
    found = dict[str, PrometheusServer]()
    for one in written:
        name, equals, url = one.partition("=")
        if not equals:
            raise CommandError(f"{_OPTION}: write NAME=URL, such as default=https://prometheus.example.com")
        try:
            server = parse_params({"name": name, "url": url}, PrometheusServer)
        except InvalidObjectError as error:
            raise CommandError(f"{_OPTION} {name}: {error}") from None
        if name in found:
            raise CommandError(f"{_OPTION} {name}: is given twice")
        found[name] = server
    return [*found.values()]


async def add_prometheus(
    data: MeasuredInput,
    servers: Sequence[PrometheusServer],
    token: str | None,
    policies: Sequence[CompiledPolicy],
    nodes: Nodes,
    *,
    wanted: Iterable[CompiledPolicy],
) -> None:
    """Add what servers answer for the `wanted` policies to the values of a file, which come first.

    Raises CommandError, also for a server that none of the policies asks.
    """
    if token is not None and not servers:
        raise CommandError(f"{_TOKEN}: is for servers: also give {_OPTION} NAME=URL")
    if not servers:
        return
    ages = _greatest_ages(policies)
    named = sorted({poll.server for poll in ages})
    for server in servers:
        if server.name not in named:
            there = f"they ask {', '.join(named)}" if named else "they ask none"
            raise CommandError(f"{_OPTION} {server.name}: the policies ask no server of that name; {there}")
    asked = {one.name for one in servers}
    of_wanted = _greatest_ages(wanted)
    polls = {poll: age_s for poll, age_s in of_wanted.items() if poll.server in asked and poll not in data.readings}
    secret = None if token is None else FileSecret(Path(token), _TOKEN, "give the file that has the token")
    access = [ServerAccess(server, Path(), secret) for server in servers]
    await _ask(data, access, polls, nodes)


def _greatest_ages(policies: Iterable[CompiledPolicy]) -> Mapping[PrometheusPoll, int]:
    ages = dict[PrometheusPoll, int]()
    for policy in policies:
        for entry in policy.data:
            if isinstance(poll := poll_of(entry), PrometheusPoll):
                age_s = entry.greatest_age_s or _LOOKBACK_S
                ages[poll] = min(age_s, ages.get(poll, age_s))
    return ages


async def _ask(
    data: MeasuredInput,
    access: Iterable[ServerAccess],
    wanted: Mapping[PrometheusPoll, int],
    nodes: Nodes,
) -> None:
    node_of = NodeNames(nodes)
    async with PrometheusClient(Path()) as client:
        client.set_access(access)
        answers = await asyncio.gather(
            *(client.read(poll, age_s, node_of) for poll, age_s in wanted.items()), return_exceptions=True
        )
    for poll, answer in zip(wanted, answers, strict=True):
        if isinstance(answer, PollError):
            data.notes.append(f"{poll.name}: {answer}")
        elif isinstance(answer, BaseException):
            raise answer
        else:
            data.readings[poll] = answer
            if answer.note:
                data.notes.append(f"{poll.name}: {answer.note}")

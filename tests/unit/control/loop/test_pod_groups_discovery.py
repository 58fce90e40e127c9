"""Discovery of Kubernetes' own groups: what counts of several API servers, and what a failure changes."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairlead.control.loop.pod_groups_discovery import PodGroupsDiscovery
from fairlead.kube.errors import ForbiddenError, NotFoundError, UnreachableError
from fairlead.kube.resources import POD_GROUPS_DISCOVERY

NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)
SERVED = b'{"resources": [{"name": "podgroups"}, {"name": "podgroups/status"}]}'
OTHERS = b'{"resources": [{"name": "workloads"}]}'
LACKING = NotFoundError("get", POD_GROUPS_DISCOVERY, "not found")
FORBIDDEN = ForbiddenError("get", POD_GROUPS_DISCOVERY, "forbidden")
AWAY = UnreachableError("get", POD_GROUPS_DISCOVERY, "it does not answer")


class _Server:
    """API servers behind one address."""

    def __init__(self, answer: bytes | Exception = SERVED) -> None:
        self.answer = answer
        self.paths: list[str] = []

    async def get(self, where: Any, decode: Callable[[bytes], Any]) -> Any:
        self.paths.append(where.path)
        if isinstance(self.answer, Exception):
            raise self.answer
        return decode(self.answer)


def _looks(*answers: tuple[float, bytes | Exception]) -> tuple[list[bool], int, list[str]]:
    """Return what is known after each answer, given by the minute, how often it changed, and what was asked for."""
    server, minute, changes = _Server(), 0.0, 0
    made = PodGroupsDiscovery(client=server, now=lambda: NOON + timedelta(minutes=minute))  # type: ignore[arg-type]

    def changed() -> None:
        nonlocal changes
        changes += 1

    made.on_change = changed
    found = []
    for at, answer in answers:
        minute, server.answer = at, answer
        asyncio.run(made.look())
        found.append(made.are_served)
    return found, changes, server.paths


@pytest.mark.parametrize(
    ("answers", "known", "changes"),
    [
        ([(0, SERVED)], [True], 1),
        ([(0, LACKING)], [False], 0),
        ([(0, OTHERS)], [False], 0),
        ([(0, b'{"resources": null}')], [False], 0),
        ([(0, SERVED), (1, LACKING)], [True, False], 2),
        ([(0, SERVED), (1, AWAY)], [True, True], 1),
        ([(0, LACKING), (1, AWAY), (20, SERVED)], [False, False, True], 1),
        ([(0, SERVED), (1, LACKING), (2, SERVED), (10, SERVED), (11, SERVED)], [True, False, False, False, True], 3),
        ([(0, LACKING), (5, LACKING), (11, SERVED), (15, SERVED)], [False, False, False, True], 1),
    ],
)
def test_each_api_server_has_to_serve_them(
    answers: list[tuple[float, bytes | Exception]], known: list[bool], changes: int
) -> None:
    found, count, paths = _looks(*answers)
    assert (found, count) == (known, changes)
    assert {*paths} == {"/apis/scheduling.k8s.io/v1beta1"}


@pytest.mark.parametrize(("answer", "known"), [(SERVED, True), (LACKING, False), (FORBIDDEN, False)])
def test_a_new_leader_looks_before_it_renders(answer: bytes | Exception, known: bool) -> None:
    made = PodGroupsDiscovery(client=_Server(answer), now=lambda: NOON)  # type: ignore[arg-type]
    asyncio.run(made.begin())
    assert made.are_served is known


def test_a_new_leader_that_gets_no_answer_begins_again() -> None:
    made = PodGroupsDiscovery(client=_Server(AWAY), now=lambda: NOON)  # type: ignore[arg-type]
    with pytest.raises(UnreachableError):
        asyncio.run(made.begin())

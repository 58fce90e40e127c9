"""Where the operator's process can be reached."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.process.operating import Operating
from testbed.fixtures import Cluster


@pytest.fixture
def start(with_crd: Cluster, namespace: str, tmp_path: Path) -> Iterator[Callable[[bool], Operating]]:
    started: list[Operating] = []

    def one(admits: bool) -> Operating:
        started.append(Operating(with_crd, namespace, tmp_path, admits=admits))
        started[-1].start()
        return started[-1]

    yield one
    for each in started:
        each.kill()


@pytest.mark.parametrize("admits", [True, False])
def test_nothing_listens_for_the_api_server_where_it_is_not_to_ask(
    start: Callable[[bool], Operating], admits: bool
) -> None:
    operating = start(admits)
    webhook, probes, admission = operating.ports
    assert operating.listens() == {webhook, probes, *([admission] if admits else [])}
    assert operating.probe("livez") == (200, "ok\n")

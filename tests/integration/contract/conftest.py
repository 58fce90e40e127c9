"""What the tests of the scheduler's contract ask for."""

from collections.abc import Callable, Iterator

import pytest

from extender import Recorder, Scene
from testbed.api import Object
from testbed.fixtures import Cluster, StartScheduler


def pytest_addoption(parser: pytest.Parser) -> None:
    """Whether the bodies of requests are kept anew."""
    parser.addoption("--record", action="store_true", help="keep this scheduler's requests in tests/data/wire")


@pytest.fixture
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    """An extender that records. A reply that raised is the test's failure, whatever the scheduler made of it."""
    with Recorder(tmp_path_factory.getbasetemp() / "extender-keys") as running:
        yield running
    assert running.failures == []


@pytest.fixture
def scene(control_plane: Cluster, namespace: str, recorder: Recorder, scheduler: StartScheduler) -> Iterator[Scene]:
    """Nodes and pods of this test alone, and a scheduler for them that calls the recorder."""

    def start(config: Object) -> Callable[[], str]:
        return scheduler(config).says

    made = Scene(api=control_plane.api, name=namespace, recorder=recorder, start_scheduler=start)
    made.open()
    yield made
    made.close()

"""What the tests of `fairlead serve` ask for."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from extender import Stage
from extender.half_held import HalfHeld, half_held
from support.process.serving import MakeServing, Serving, certificates
from testbed.api import Object
from testbed.fixtures import Cluster, StartScheduler


@pytest.fixture(scope="session")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of `fairlead certs`."""
    return certificates(tmp_path_factory.mktemp("certs"))


@pytest.fixture
def half(tmp_path: Path) -> Iterator[HalfHeld]:
    """By which a group is held by half. Tests name it before the stage, so that it ends after the scheduler."""
    with half_held(tmp_path / "half-keys") as made:
        yield made


@pytest.fixture
def stage(ground: Cluster, namespace: str, scheduler: StartScheduler) -> Iterator[Stage]:
    """Pods of this test alone, and a real scheduler for them."""

    def start(config: Object) -> Callable[[], str]:
        return scheduler({"percentageOfNodesToScore": 100, "podMaxBackoffSeconds": 5} | config).says

    made = Stage(api=ground.api, name=namespace, start_scheduler=start)
    made.open()
    yield made
    ground.api.delete(made.path)


@pytest.fixture
def make_serving(ground: Cluster, namespace: str, certs: Path, tmp_path: Path) -> Iterator[MakeServing]:
    """Each with policies of its own; killed in the end."""
    made: list[Serving] = []
    numbers = itertools.count()

    def make(kubeconfig: Path | None = None) -> Serving:
        policies = tmp_path / f"policies-{next(numbers)}"
        policies.mkdir()
        made.append(Serving(ground.folder, kubeconfig or ground.kubeconfig, namespace, certs, policies))
        return made[-1]

    yield make
    for one in made:
        one.kill()


@pytest.fixture
def serving(make_serving: MakeServing) -> Serving:
    """One, with the rights of an administrator."""
    return make_serving()

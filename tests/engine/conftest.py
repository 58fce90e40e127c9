"""A Docker engine that has what a cluster of kind and the operator's image would pull."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.engine import node_image, python_image
from support.engine.docker_engine import DockerEngine
from testbed import build, cache, packages, sandbox
from testbed.operator_image import CHECKOUT
from testbed.providers import kind_config
from testbed.versions import program


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerEngine]:
    """The engine, in namespaces of its own, where nothing can be pulled."""
    if why := sandbox.obstacle():
        pytest.skip(f"no engine can be started here: {why}")
    for need in (packages.NODE, packages.IMAGE):
        packages.ensure(need)
    build.build(map(program, ("kind", "kwok", "kubectl", "helm")))
    made = DockerEngine(cache.root() / "engine")
    with cache.locked("engine", doing="running the tests of kind"):
        made.up()
        try:
            node, python = node_image.ensure(made), python_image.ensure(made)
            bases = python_image.published((CHECKOUT / "Dockerfile").read_text())
            made.name({kind_config.image(): node} | dict.fromkeys(bases, python))
            made.forget_older(node, python)
            # what a person's first `up` builds, which nothing can be fetched for here
            build.build([replace(program("pod"), platform=made.platform())])
            yield made
        finally:
            made.down()

"""The recorded requests are all there, and are what later tests take them for."""

import pytest

from extender import wire
from extender.shapes import KEYS, check
from testbed.versions import KUBERNETES


def test_every_version_has_every_sample() -> None:
    kept = {(path.parent.name, path.stem) for path in wire.FOLDER.glob("*/*")}
    assert kept == {(version, sample) for version in KUBERNETES for sample in KEYS}


@pytest.mark.parametrize("sample", KEYS)
@pytest.mark.parametrize("version", KUBERNETES)
def test_a_recorded_body_is_what_the_contract_says(version: str, sample: str) -> None:
    check(version, sample, wire.read(version, sample))

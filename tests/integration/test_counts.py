"""Calls need no more instructions and cache lines than they did, counted by callgrind, which no noise touches."""

import platform

import pytest

from bench import callgrind, counts


def test_calls_do_no_more_work_than_they_did() -> None:
    if platform.machine() not in callgrind.MACHINES:
        return  # what is kept is of one architecture
    if why := callgrind.obstacle():
        pytest.skip(why)
    wrong = counts.check(callgrind.run(counts.MODULE), counts.read().get(counts.PYTHON))
    assert not wrong, "\n".join(wrong)

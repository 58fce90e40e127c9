"""What is hidden from the collector, and what is not."""

import gc
import weakref

import pytest

from fairlead.allocator import tidy_up


class Connection:
    """Refers to itself, as those of asyncio do."""

    def __init__(self) -> None:
        self.read = self.reads

    def reads(self) -> None:
        pass


@pytest.mark.parametrize(("most", "freed"), [(10**9, True), (0, False)])
def test_what_goes_later_is_freed_unless_there_is_much(most: int, freed: bool) -> None:
    one = Connection()
    seen = weakref.ref(one)
    try:
        tidy_up(most)
        del one
        tidy_up(most)
        assert (seen() is None) is freed
    finally:
        gc.unfreeze()

"""What the C library and Python do with memory that was used.

By default the C library gives the end of its heap back to the kernel after each large call and asks for it again at the
next one, and a third of the time of such a call is the kernel's, who clears those pages.
"""

import ctypes
import gc
from typing import Final

_TRIM_THRESHOLD: Final = -1
_TOP_PAD: Final = -2
_MMAP_THRESHOLD: Final = -3
_KEPT: Final = 64 << 20
_ASKED: Final = 8 << 20
_LARGE: Final = 32 << 20
_YOUNG: Final = 2_000
_STEPS: Final = 2
_NEVER: Final = 1 << 30


def keep_heap() -> None:
    """Let it keep some of it, where this C library can."""
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # not glibc
        return
    for what, size in ((_TRIM_THRESHOLD, _KEPT), (_TOP_PAD, _ASKED), (_MMAP_THRESHOLD, _LARGE)):
        tell(what, size)


def collect_in_small_steps() -> None:
    """Never walk more at once than what came just now: the collector takes a microsecond for each object."""
    gc.set_threshold(_YOUNG, _STEPS, _NEVER)


def tidy_up(most: int) -> None:
    """Collect what came since the last time, or pass over it in future where it is so much that calls would wait.

    What is passed over and refers to itself, as a connection that is open now does, is not freed before `tidy_up_all`.
    """
    if len(gc.get_objects()) > most:
        gc.freeze()
    else:
        gc.collect()


def tidy_up_all() -> None:
    """Collect also what was passed over: a third of a second in a large cluster."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()

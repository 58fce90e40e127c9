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


def keep_heap() -> None:
    """Let it keep some of it, where this C library can."""
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # not glibc
        return
    for what, size in ((_TRIM_THRESHOLD, _KEPT), (_TOP_PAD, _ASKED), (_MMAP_THRESHOLD, _LARGE)):
        tell(what, size)


def tidy_up(most: int) -> None:
    """Collect what came since the last time, and pass over what is left in future, once there is much of it.

    What is passed over and refers to itself, as every connection does, is never freed: that should be rare.
    """
    gc.collect()
    if len(gc.get_objects()) > most:
        gc.freeze()

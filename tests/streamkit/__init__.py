"""A steady stream of pods through whatever happens to their scheduler, and a count of what became of each."""

from streamkit.follow import Follow
from streamkit.stream import Stream
from streamkit.tally import Pod, Row, table, tally, wrong

__all__ = ["Follow", "Pod", "Row", "Stream", "table", "tally", "wrong"]

"""A steady stream of pods through whatever happens to their scheduler, and a count of what became of each."""

from support.stream.follow import Follow
from support.stream.stream import Stream
from support.stream.tally import Pod, Row, table, tally, wrong

__all__ = ["Follow", "Pod", "Row", "Stream", "table", "tally", "wrong"]

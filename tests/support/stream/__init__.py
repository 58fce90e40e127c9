"""A steady stream of pods through whatever happens to their scheduler, and a count of what became of each."""

from support.stream.follow import Follow
from support.stream.stream import VALUES, Stream
from support.stream.tally import Row, StreamedPod, table, tally, wrong

__all__ = ["VALUES", "Follow", "Row", "Stream", "StreamedPod", "table", "tally", "wrong"]

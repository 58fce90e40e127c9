"""Error in a snapshot; commands catch it without loading what reads snapshots."""


class SnapshotError(ValueError):
    """Error in a snapshot, with a one-line message: the file, the problem and the fix."""

"""What starts a reconcile: watch, queue, poll and wake; `assemble` builds it."""

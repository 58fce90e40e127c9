"""Watches, the queue, polling and waking: all that starts a reconcile; `assemble` builds it."""

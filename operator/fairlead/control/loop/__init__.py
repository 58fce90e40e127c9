"""Watches, the queue, polling and waking: all that starts a reconcile; `controller` puts it together."""

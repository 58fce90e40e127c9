"""Policies asked about a cluster that is on paper: by the engine of the webhook, over the mirror of the operator."""

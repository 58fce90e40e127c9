"""Requests that are broken in all ways against the verbs of the webhook.

`python -m fuzz` is the long run; `tests/unit/webhook/test_fuzz.py` the short one.
"""

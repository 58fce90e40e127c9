"""Compiled policies: for a pod and nodes, verdicts, scores and the reasons for them."""

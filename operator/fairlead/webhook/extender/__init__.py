"""kube-scheduler's protocol, its verbs, and what they answer from; pure."""

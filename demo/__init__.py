"""`make demo`: a cluster, the operator, and what policies do to pods. Each claim is checked as it is shown."""

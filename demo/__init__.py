"""`make demo`: a cluster, the operator in it, and what policies do to pods; each claim is checked as it is made."""

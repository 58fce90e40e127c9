"""Controller of the leader: from policies to schedulers that obey them. Only this package uses kopf."""

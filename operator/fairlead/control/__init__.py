"""The operator: from policies to schedulers that obey them. Only here is kopf."""

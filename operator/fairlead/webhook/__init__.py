"""The extender as kube-scheduler sees it."""

"""Fairlead: change where Kubernetes pods are placed by applying a policy."""

__version__ = "0.1.0.dev0"

"""A Kubernetes client that knows no policy."""

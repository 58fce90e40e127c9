"""Files, clusters and suites as commands read them, and findings about them."""

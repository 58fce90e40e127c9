"""What commands read: files, clusters and suites, and what is wrong in them."""

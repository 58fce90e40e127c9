"""Site of docs/, which Zensical builds from copies of the pages."""

"""Pages as a reader follows them."""

"""What the functions of the language do, on the values of `values`."""

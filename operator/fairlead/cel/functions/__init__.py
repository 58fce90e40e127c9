"""Functions of CEL in Python, on the values of `cel/values`."""

"""The functions of the language, on the values of `cel/values`."""

"""The rule language: CEL, checked by the official engine against the API's types, and lowered to Python."""

"""The official engine: environment, evaluation, its types and errors."""

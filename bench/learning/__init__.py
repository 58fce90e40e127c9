"""Experiments of the guide's page about rules that learn; `python -m bench.learning` runs them."""

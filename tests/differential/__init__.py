"""Lowered expressions compared with the engine, on expressions from a grammar of the whole language and generated data.

`python -m differential` is the long run; `tests/unit/cel/lowering/test_differential.py` the short one.
"""

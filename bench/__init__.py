"""Benchmarks of the product: one module a subject, collected by `python -m bench`.

A benchmark is a function of a `Size` that gives samples, best measured often: the machine is shared. No test asserts a
time; a test only runs each benchmark once, at a tiny size, so that none of them rots.
"""

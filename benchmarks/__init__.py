"""Benchmarks: tempo_ir beside torch and jax on the same work, `python -m benchmarks NAME [--quick] [--json FILE]`.

A benchmark never asserts a time. It checks first that all systems compute the same numbers, then runs them alternately
in one process and reports seconds, ratios and peak bytes.
"""

"""Benchmarks for a machine with a GPU; what was measured there is kept beside them."""

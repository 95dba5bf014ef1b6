"""Benchmarks of repairing searches: tables of real trainings, searches on them, and priors made from them."""

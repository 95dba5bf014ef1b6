"""Many approaches and tasks: omnibus tests, ranks, aggregates with bootstrap intervals."""
